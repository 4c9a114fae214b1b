/** An answer in HTTP/1.1. */
export interface Http1Answer {
  readonly status: number;
  /** Header fields and body, as text. */
  readonly text: string;
}

/**
 * The answers in what a server sent, without the interim ones (1xx). Every status line counts, so that an answer that is
 * framed wrongly does not hide the ones behind it; no body of ours holds a status line.
 */
export function http1Answers(received: Buffer): Http1Answer[] {
  const texts = received.toString("latin1").split(/(?=HTTP\/1\.1 \d{3} )/);
  return texts.flatMap((text) => {
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1] ?? Number.NaN);
    return Number.isNaN(status) || status < 200 ? [] : [{ status, text }];
  });
}

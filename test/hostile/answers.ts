/** An HTTP/1.1 response. */
export interface Http1Answer {
  readonly status: number;
  /** Header fields and body, as text. */
  readonly text: string;
}

/**
 * Returns the responses in the bytes from a server, without interim ones (1xx). Every status line counts, so that a response with wrong
 * framing does not hide the ones after it; no body of Keyhold contains a status line.
 */
export function http1Answers(received: Buffer): Http1Answer[] {
  const texts = received.toString("latin1").split(/(?=HTTP\/1\.1 \d{3} )/);
  return texts.flatMap((text) => {
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1] ?? Number.NaN);
    return Number.isNaN(status) || status < 200 ? [] : [{ status, text }];
  });
}

/** Names and values by turns: what Node writes without looking each up. */
export type Fields = string[];

export interface Answer {
  readonly status: number;
  readonly headers: Fields;
  readonly body: string | Uint8Array;
  /** HTTP/2 alone. */
  readonly trailers?: Readonly<Record<string, string>>;
}

/** What becomes of a request's body. One of them is called, once. */
export interface BodyReader {
  onBody(bytes: Uint8Array): void;
  /** At the byte above the limit. */
  onTooLarge(): void;
  /** The caller went away before the end. */
  onGone(): void;
}

/** One request and its answer, whichever HTTP carries them. */
export interface Exchange {
  /** By its lower-case name; several values come joined by ", ". */
  header(name: string): string | undefined;
  /** `limit` in bytes. What comes above it flows, and is dropped. */
  readBody(limit: number, reader: BodyReader): void;
  /** Lets the body flow, and drops it: the connection is to take the next request. */
  dropBody(): void;
  /** Called when the caller goes away before the answer. */
  onGone(listener: () => void): void;
  /** Of a caller that went away nothing is sent. */
  respond(answer: Answer): void;
}

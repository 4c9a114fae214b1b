import type { Readable } from "node:stream";
import type { BodyReader } from "./exchange.ts";

/** For `Exchange.readBody`: the whole of a stream, which flows to its end whatever becomes of it. */
export function readWhole(source: Readable, limit: number, reader: BodyReader): void {
  const body = new Body(limit, reader);
  source.on("data", (chunk: Uint8Array) => body.add(chunk));
  // Not `once`, which wraps: the first that comes is all that counts.
  source.on("end", () => body.end());
  source.on("close", () => body.lose());
  if (source.destroyed) body.lose();
}

const EMPTY = new Uint8Array();

class Body {
  readonly #limit: number;
  /** Until it is told. Streams may live on for a while, and are not to keep what the call was. */
  #reader: BodyReader | undefined;
  /** All that has come, where it came at once, as most does. */
  #first: Uint8Array = EMPTY;
  #chunks: Uint8Array[] | undefined;
  #size = 0;

  constructor(limit: number, reader: BodyReader) {
    this.#limit = limit;
    this.#reader = reader;
  }

  add(chunk: Uint8Array): void {
    if (this.#reader === undefined) return;
    this.#size += chunk.length;
    if (this.#size > this.#limit) this.#finish()?.onTooLarge();
    else if (this.#size === chunk.length) this.#first = chunk;
    else if (this.#chunks === undefined) this.#chunks = [this.#first, chunk];
    else this.#chunks.push(chunk);
  }

  end(): void {
    const bytes = this.#chunks === undefined ? this.#first : Buffer.concat(this.#chunks, this.#size);
    this.#finish()?.onBody(bytes);
  }

  lose(): void {
    this.#finish()?.onGone();
  }

  /** The reader, the first time. */
  #finish(): BodyReader | undefined {
    const reader = this.#reader;
    this.#reader = undefined;
    this.#first = EMPTY;
    this.#chunks = undefined;
    return reader;
  }
}

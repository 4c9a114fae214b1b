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
  readonly #reader: BodyReader;
  /** All that has come, where it came at once, as most does. */
  #first: Uint8Array = EMPTY;
  #chunks: Uint8Array[] | undefined;
  #size = 0;
  #isOver = false;

  constructor(limit: number, reader: BodyReader) {
    this.#limit = limit;
    this.#reader = reader;
  }

  add(chunk: Uint8Array): void {
    if (this.#isOver) return;
    this.#size += chunk.length;
    if (this.#size > this.#limit) this.#refuse();
    else if (this.#size === chunk.length) this.#first = chunk;
    else if (this.#chunks === undefined) this.#chunks = [this.#first, chunk];
    else this.#chunks.push(chunk);
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#reader.onBody(this.#chunks === undefined ? this.#first : Buffer.concat(this.#chunks, this.#size));
  }

  lose(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#reader.onGone();
  }

  #refuse(): void {
    this.#isOver = true;
    this.#chunks = undefined;
    this.#reader.onTooLarge();
  }
}

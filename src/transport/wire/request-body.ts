import type { IncomingMessage } from "node:http";
import { KeyholdError } from "../../domain/errors.ts";
import { type Linked, LinkedList } from "../../lib/linked-list.ts";
import { HttpError } from "./http-error.ts";
import { createTickBudget } from "./tick-budget.ts";

/** Overhead of a chunk: a client may send a body in frames of one byte. */
const CHUNK_OVERHEAD = 256;

/**
 * Bounds the memory of all incoming request bodies of this process, over every protocol. When it is exhausted, the body that has been
 * incomplete the longest is evicted: an honest client completes its body quickly.
 */
export class BodyBudget {
  readonly #max: number;
  /** In bytes. */
  used = 0;
  /** In order of arrival of their first bytes. */
  readonly #bodies = new LinkedList<BodyBuffer>();

  /** `max` in bytes. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Adds bytes of a body; `isNew` for its first bytes. */
  take(body: BodyBuffer, bytes: number, isNew: boolean): void {
    this.used += bytes;
    if (isNew) this.#bodies.add(body);
    while (this.used > this.#max && this.#bodies.oldest !== undefined) this.#bodies.oldest.evict();
  }

  release(body: BodyBuffer, bytes: number): void {
    this.used -= bytes;
    this.#bodies.remove(body);
  }
}

const EMPTY = new Uint8Array();

/** The call whose body is received, which is rejected when the body is evicted. A closure per call would cost as much as the buffer. */
type BodyOwner = { reject(error: Error): void };

export class BodyBuffer implements Linked<BodyBuffer> {
  readonly #limit: number;
  readonly #budget: BodyBudget;
  readonly #owner: BodyOwner;
  #first: Uint8Array = EMPTY;
  /** Undefined while there is at most one chunk, as for most bodies. */
  #chunks: Uint8Array[] | undefined;
  #size = 0;
  #held = 0;
  older: BodyBuffer | undefined;
  newer: BodyBuffer | undefined;

  /** `limit` in bytes. */
  constructor(limit: number, budget: BodyBudget, owner: BodyOwner) {
    this.#limit = limit;
    this.#budget = budget;
    this.#owner = owner;
  }

  /** Returns false if the body exceeds its limit; nothing is kept then. */
  add(chunk: Uint8Array): boolean {
    this.#size += chunk.length;
    if (this.#size > this.#limit) {
      this.drop();
      return false;
    }
    if (this.#size === chunk.length) this.#first = chunk;
    else if (this.#chunks === undefined) this.#chunks = [this.#first, chunk];
    else this.#chunks.push(chunk);
    const cost = chunk.length + CHUNK_OVERHEAD;
    const isNew = this.#held === 0;
    this.#held += cost;
    this.#budget.take(this, cost, isNew);
    return true;
  }

  /** Returns the complete body, which no longer counts. */
  complete(): Uint8Array {
    const bytes = this.#chunks === undefined ? this.#first : Buffer.concat(this.#chunks, this.#size);
    this.drop();
    return bytes;
  }

  drop(): void {
    if (this.#held > 0) this.#budget.release(this, this.#held);
    this.#held = 0;
    this.#first = EMPTY;
    this.#chunks = undefined;
  }

  evict(): void {
    this.drop();
    this.#owner.reject(
      new KeyholdError("OVERLOADED", "the request body arrived too slowly while the server was busy; retry after 1 s"),
    );
  }
}

export type ReadBody = (raw: IncomingMessage, limit: number) => Promise<Uint8Array>;

export const NO_BODY = new Uint8Array();

/** From so many bytes on, a body may hold dozens of items, whose work without the fast path takes milliseconds. */
const MANY_ITEMS = 4096;

/**
 * Returns a reader of complete request bodies of at most `limit` bytes. It rejects with an `HttpError` at the first byte above the limit;
 * with `OVERLOADED` if the body is evicted; and if the client disconnects or resets the stream before the end, because an incomplete
 * message must not be executed. Later bytes are drained, so that a client that sends first gets its response. Each tick of the event loop
 * gets one long body: the work of a batch of 1,000 takes tens of milliseconds, and dozens of them in one tick would stop the process.
 */
export function bodyReader(budget: BodyBudget): ReadBody {
  const enter = createTickBudget<() => void>((resume) => resume(), 1);
  return async (raw, limit) => {
    if (hasNoBody(raw)) return NO_BODY;
    if (Number(raw.headers["content-length"]) > limit) throw new HttpError("BODY_TOO_LARGE");
    // An aborted HTTP/2 request may never end or close.
    if (raw.destroyed || raw.aborted) throw new HttpError("REQUEST_CANCELLED");
    return new Promise((resolve, reject) => {
      let buffer: BodyBuffer | undefined = new BodyBuffer(limit, budget, { reject: fail });
      function fail(error: Error): void {
        buffer?.drop();
        buffer = undefined;
        reject(error);
      }
      // Every request is closed eventually, and creating a stack takes longer than reading the body.
      const cancel = () => buffer && fail(new HttpError("REQUEST_CANCELLED"));
      raw.on("data", (chunk: Uint8Array) => {
        if (buffer?.add(chunk) === false) fail(new HttpError("BODY_TOO_LARGE"));
      });
      // Node also ends the request of a stream that was reset or lost before END_STREAM, after "aborted".
      for (const event of ["aborted", "error", "close"]) raw.once(event, cancel);
      raw.once("end", () => {
        const bytes = buffer?.complete();
        buffer = undefined;
        if (bytes === undefined) return;
        if (bytes.length < MANY_ITEMS) resolve(bytes);
        else enter(() => resolve(bytes));
      });
    });
  };
}

/** HTTP/1.1 signals it in the header (RFC 9112 §6.3), HTTP/2 by the end of the stream. */
function hasNoBody({ headers, httpVersionMajor }: IncomingMessage): boolean {
  const length = headers["content-length"];
  if (length !== undefined) return length === "0";
  return httpVersionMajor === 1 && headers["transfer-encoding"] === undefined;
}

import type { IncomingMessage } from "node:http";
import { type BodyBudget, BodyBuffer } from "./body-budget.ts";
import { HttpError } from "./errors/http-error.ts";

/** Reads request bodies that are complete messages. */
export type ReadBody = (raw: IncomingMessage, limit: number) => Promise<Uint8Array>;

export const NO_BODY = new Uint8Array();

/**
 * Makes the reader of complete request bodies of at most `limit` bytes. It rejects with a `Refusal` at the byte above the limit; with
 * `OVERLOADED` if the body must make room for others; and if the client disconnects or resets the stream before the end: part of a message
 * is no message. What follows still flows, and is dropped, so that a client that sends first gets its answer.
 */
export function bodyReader(budget: BodyBudget): ReadBody {
  return async (raw, limit) => {
    if (hasNoBody(raw)) return NO_BODY;
    if (Number(raw.headers["content-length"]) > limit) throw new HttpError("BODY_TOO_LARGE");
    // An HTTP/2 request may be aborted and yet never end nor close.
    if (raw.destroyed || raw.aborted) throw new HttpError("REQUEST_CANCELLED");
    return new Promise((resolve, reject) => {
      let buffer: BodyBuffer | undefined = new BodyBuffer(limit, budget, { refuse: fail });
      function fail(error: Error): void {
        buffer?.drop();
        buffer = undefined;
        reject(error);
      }
      // Every request is closed in the end, and a stack takes longer than to read it.
      const cancel = () => buffer && fail(new HttpError("REQUEST_CANCELLED"));
      raw.on("data", (chunk: Uint8Array) => {
        if (buffer?.add(chunk) === false) fail(new HttpError("BODY_TOO_LARGE"));
      });
      // Node also ends the request of a stream that was reset or lost before END_STREAM, after "aborted".
      for (const event of ["aborted", "error", "close"]) raw.once(event, cancel);
      raw.once("end", () => {
        if (buffer !== undefined) resolve(buffer.complete());
        buffer = undefined;
      });
    });
  };
}

/** HTTP/1.1 says so in the header (RFC 9112 §6.3); in HTTP/2 the end of the stream does. */
export function hasNoBody({ headers, httpVersionMajor }: IncomingMessage): boolean {
  const length = headers["content-length"];
  if (length !== undefined) return length === "0";
  return httpVersionMajor === 1 && headers["transfer-encoding"] === undefined;
}

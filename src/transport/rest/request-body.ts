import type { IncomingMessage } from "node:http";
import type { BodyRule } from "./binding.ts";
import { Refusal } from "./refusal.ts";

const JSON_MEDIA_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i;

/** The bytes of a request's body, which are to be JSON. `limit` is in bytes. Rejects with a `Refusal`. */
export async function readJsonBody(raw: IncomingMessage, rule: BodyRule, limit: number): Promise<Uint8Array> {
  if (rule.kind === "none") return readBody(raw, limit);
  requireKnownType(raw);
  const bytes = await readBody(raw, limit);
  if (bytes.length > 0 && raw.headers["content-type"] === undefined) throw new Refusal("MEDIA_TYPE_NOT_SUPPORTED");
  return bytes;
}

/**
 * A type other than JSON is refused even where the body is empty: a form on a foreign web page can send such a request
 * without asking (CSRF). No type at all is fine then.
 */
function requireKnownType({ headers }: IncomingMessage): void {
  const type = headers["content-type"];
  if (type !== undefined && !JSON_MEDIA_TYPE.test(type)) throw new Refusal("MEDIA_TYPE_NOT_SUPPORTED");
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding.toLowerCase() !== "identity") throw new Refusal("CONTENT_ENCODING_NOT_SUPPORTED");
}

const EMPTY = new Uint8Array();

/** Rejects at the byte above the limit; the rest still flows, and is dropped, so that a client that sends first gets its answer. */
async function readBody(raw: IncomingMessage, limit: number): Promise<Uint8Array> {
  if (hasNoBody(raw)) return EMPTY;
  if (Number(raw.headers["content-length"]) > limit) throw new Refusal("BODY_TOO_LARGE");
  // In HTTP/2 it may be aborted and yet never end nor close.
  if (raw.destroyed || raw.aborted) throw new Refusal("REQUEST_CANCELLED");
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    raw.on("data", (chunk: Uint8Array) => {
      size += chunk.length;
      if (size <= limit) chunks.push(chunk);
      else reject(new Refusal("BODY_TOO_LARGE"));
    });
    raw.once("end", () => resolve(Buffer.concat(chunks)));
    for (const event of ["aborted", "error", "close"]) raw.once(event, () => reject(new Refusal("REQUEST_CANCELLED")));
  });
}

/** HTTP/1.1 says so in the header (RFC 9112 §6.3); in HTTP/2 the end of the stream does. */
function hasNoBody({ headers, httpVersionMajor }: IncomingMessage): boolean {
  const length = headers["content-length"];
  if (length !== undefined) return length === "0";
  return httpVersionMajor === 1 && headers["transfer-encoding"] === undefined;
}

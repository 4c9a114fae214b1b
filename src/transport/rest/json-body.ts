import type { IncomingMessage } from "node:http";
import type { ReadBody } from "../request-body.ts";
import type { BodyRule } from "./binding.ts";
import { Refusal } from "./refusal.ts";

const JSON_MEDIA_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i;

/** Reads a request's body, which must be JSON. `limit` is in bytes. Rejects with a `Refusal`. */
export async function readJsonBody(
  readBody: ReadBody,
  raw: IncomingMessage,
  rule: BodyRule,
  limit: number,
): Promise<Uint8Array> {
  if (rule.kind === "none") return readBody(raw, limit);
  const { "content-type": type, "content-encoding": encoding = "identity" } = raw.headers;
  // Even where the body is empty: a form on a foreign web page can send such a request without asking (CSRF).
  if (type !== undefined && !JSON_MEDIA_TYPE.test(type)) throw new Refusal("MEDIA_TYPE_NOT_SUPPORTED");
  if (encoding.toLowerCase() !== "identity") throw new Refusal("CONTENT_ENCODING_NOT_SUPPORTED");
  const bytes = await readBody(raw, limit);
  if (bytes.length > 0 && type === undefined) throw new Refusal("MEDIA_TYPE_NOT_SUPPORTED");
  return bytes;
}

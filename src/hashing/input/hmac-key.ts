import { invalidArgument } from "../../domain/errors.ts";
import type { TextEncoding } from "../../domain/raw-key-hash.ts";
import { decodeBytes } from "./text-encoding.ts";

const MAX_BYTES = 1024;

/**
 * Parses the key of HMAC hashes, 1 to 1024 bytes. A `null` encoding is absent.
 *
 * @throws `INVALID_ARGUMENT` naming `key` or `encoding`. The key is not quoted.
 */
export function parseHmacKey(text: string, encoding: TextEncoding | null): Uint8Array {
  if (text === "") throw invalidArgument("key", "is required", "FIELD_REQUIRED");
  if (encoding === null)
    throw invalidArgument("encoding", "is required; set a TEXT_ENCODING_* value", "FIELD_REQUIRED");
  const key = encoding === "UTF8" ? encodeUtf8(text) : decodeBytes(text, encoding, "key");
  if (key.length <= MAX_BYTES) return key;
  throw invalidArgument("key", `has ${key.length} bytes; it must have 1 to ${MAX_BYTES}`, "STRING_TOO_LONG");
}

function encodeUtf8(text: string): Uint8Array {
  if (text.isWellFormed()) return Buffer.from(text);
  throw invalidArgument("key", "must be well-formed Unicode", "INVALID_CHARACTER");
}

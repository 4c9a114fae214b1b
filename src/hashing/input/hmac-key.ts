import { invalidArgument } from "../../domain/errors.ts";
import type { TextEncoding } from "../../domain/raw-key-hash.ts";
import { decodeBytes } from "./text-encoding.ts";

const MAX_BYTES = 1024;

/**
 * Parses the key of HMAC hashes, 1 to 1024 bytes. A `null` encoding is absent.
 *
 * @throws `INVALID_ARGUMENT` naming `field`, or for the encoding `encoding` beside it. The key is not quoted.
 */
export function parseHmacKey(text: string, encoding: TextEncoding | null, field = "key"): Uint8Array {
  if (text === "") throw invalidArgument(field, "is required", "FIELD_REQUIRED");
  if (encoding === null) {
    const path = field.replace(/[^.]*$/, "encoding");
    throw invalidArgument(path, "is required: HEX, BASE64, BASE64URL or UTF8", "FIELD_REQUIRED");
  }
  const key = encoding === "UTF8" ? encodeUtf8(text, field) : decodeBytes(text, encoding, field);
  if (key.length <= MAX_BYTES) return key;
  throw invalidArgument(field, `has ${key.length} bytes; it must have 1 to ${MAX_BYTES}`, "STRING_TOO_LONG");
}

function encodeUtf8(text: string, field: string): Uint8Array {
  if (text.isWellFormed()) return Buffer.from(text);
  throw invalidArgument(field, "must be well-formed Unicode", "INVALID_CHARACTER");
}

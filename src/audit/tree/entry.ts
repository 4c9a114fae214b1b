import canonicalize from "canonicalize";
import type { JsonObject } from "../../lib/json.ts";
import { HASH_SIZE, sha256 } from "./merkle.ts";

/**
 * Returns the digest of an event, given as the API states it in JSON, without empty fields: SHA-256 of the salt and the canonical JSON (RFC 8785)
 * of all that is not in the entry itself. Null: the event was erased, and has no salt. The JSON of a stored event may never change:
 * `test/audit/tree/entry.test.ts` has samples.
 */
export function digestOf({ salt, ...event }: JsonObject): Buffer | null {
  return typeof salt === "string" ? sha256(Buffer.concat([Buffer.from(salt), utf8(contentOf(event))])) : null;
}

/** Returns what is not in the entry of an event. */
export function contentOf({ seq: _, time: __, action: ___, key_id: ____, ...content }: JsonObject): JsonObject {
  return content;
}

/** Returns what the tree has of an event. It survives the erasure of the event. */
export function entryOf(seq: number, { time, action, key_id }: JsonObject, digest: Uint8Array): Buffer {
  return utf8({ seq, time, action, key_id, digest: Buffer.from(digest).toString("hex") });
}

/** Returns the canonical JSON of an object (RFC 8785) in UTF-8. */
function utf8(object: object): Buffer {
  return Buffer.from(canonicalize(object) ?? "");
}

/** Returns entries in the form of an entry bundle (C2SP tlog-tiles). */
export function bundleOf(entries: readonly Uint8Array[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(entry.length);
    return [length, entry];
  });
  return Buffer.concat(parts);
}

/** Throws a `RangeError` if the bundle is malformed. */
export function entriesOf(bundle: Uint8Array): Uint8Array[] {
  const buffer = Buffer.from(bundle);
  const entries: Uint8Array[] = [];
  for (let at = 0; at < buffer.length; ) {
    const end = at + 2 + buffer.readUInt16BE(at);
    if (end > buffer.length) throw new RangeError("the entry bundle ends within an entry");
    entries.push(buffer.subarray(at + 2, end));
    at = end;
  }
  return entries;
}

/** Returns the hashes or digests of concatenated bytes. */
export function splitHashes(bytes: Uint8Array): Uint8Array[] {
  return Array.from({ length: bytes.length / HASH_SIZE }, (_, place) =>
    bytes.subarray(place * HASH_SIZE, (place + 1) * HASH_SIZE),
  );
}

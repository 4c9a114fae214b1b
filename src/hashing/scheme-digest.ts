import { createHash } from "node:crypto";
import type { HashSchemeSpec } from "../domain/raw-key-hash.ts";

/** By scheme, which is immutable: that of a verification is known for long. */
const digests = new WeakMap<HashSchemeSpec, Uint8Array>();

/** The last one by its text: each row of an import has a scheme of its own, usually the same as before. */
let last: { readonly text: string; readonly digest: Uint8Array } | null = null;

/** Returns 32 bytes that distinct schemes do not share. The row id of a scheme is no part of it: a restored database may number them anew. */
export function schemeDigest(scheme: HashSchemeSpec): Uint8Array {
  const known = digests.get(scheme);
  if (known !== undefined) return known;
  const { algorithm, prefix, suffix, hmacKeyId } = scheme;
  const text = JSON.stringify([algorithm, prefix, suffix, hmacKeyId]);
  if (last?.text !== text) last = { text, digest: createHash("sha256").update(text).digest() };
  digests.set(scheme, last.digest);
  return last.digest;
}

import { createHash } from "node:crypto";
import type { HashSchemeSpec } from "../../domain/raw-key-hash.ts";

/** By scheme, which is immutable: that of a verification is known for long. */
const digests = new WeakMap<HashSchemeSpec, Uint8Array>();

/** Returns 32 bytes that distinct schemes do not share. The row id of a scheme is no part of it: a restored database may number them anew. */
export function schemeDigest(scheme: HashSchemeSpec): Uint8Array {
  const known = digests.get(scheme);
  if (known !== undefined) return known;
  const { algorithm, prefix, suffix, hmacKeyId } = scheme;
  const digest = createHash("sha256")
    .update(JSON.stringify([algorithm, prefix, suffix, hmacKeyId]))
    .digest();
  digests.set(scheme, digest);
  return digest;
}

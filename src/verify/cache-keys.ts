import type { KeyLookup } from "./reader.ts";

/** Returns the cache keys of a lookup: its key id, or its digests with one character per byte. Empty if it can match nothing. */
export function namesOf({ keyId, digests }: KeyLookup): string[] {
  return keyId === null ? digests.map(digestName) : [keyId];
}

/** Returns the key that identifies a lookup: digests of one raw key under several server keys are cached and evicted together. */
export function nameOf({ keyId, digests: [first] }: KeyLookup): string | undefined {
  if (keyId !== null) return keyId;
  return first === undefined ? undefined : digestName(first);
}

export function digestName(digest: Uint8Array): string {
  return Buffer.from(digest.buffer, digest.byteOffset, digest.byteLength).toString("latin1");
}

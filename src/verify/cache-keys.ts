import type { KeyLookup } from "./reader.ts";

/** The names of a look-up in memory: its key id, or its digests, a character a byte. None if it can find nothing. */
export function namesOf({ keyId, digests }: KeyLookup): string[] {
  return keyId === null ? digests.map(digestName) : [keyId];
}

/** The name that tells it from others: digests of one raw key under several server keys come and go together. */
export function nameOf({ keyId, digests: [first] }: KeyLookup): string | undefined {
  if (keyId !== null) return keyId;
  return first === undefined ? undefined : digestName(first);
}

export function digestName(digest: Uint8Array): string {
  return Buffer.from(digest.buffer, digest.byteOffset, digest.byteLength).toString("latin1");
}

import type { SecretDigest } from "../../domain/key.ts";
import type { HashLookups } from "../../domain/raw-key-hash.ts";
import { equalBytes } from "../../lib/bytes.ts";
import type { KeyLookup, VerifiableRecord } from "../reader.ts";
import type { HashRecognition } from "./recognition.ts";

/** A digest of a fast hash of a raw key. */
interface HashDigest extends SecretDigest {
  readonly schemeId: number;
}

/** What a raw key may be stored as. */
export interface Candidates {
  /** Finds all of it by one read: an adoption at the same time is either seen or not. */
  readonly lookup: KeyLookup;
  /** Of every scheme with fast hashes, under every server key. */
  readonly hashed: readonly HashDigest[];
}

/** Returns what a raw key with these digests may be stored as besides them; null: nothing is in use. */
export function candidatesOf(
  rawKey: string,
  digests: readonly SecretDigest[],
  { schemes, prefixLengths }: HashLookups,
  hashes: HashRecognition,
): Candidates | null {
  if (digests.length === 0) return null;
  const hashed = schemes.flatMap((scheme) =>
    hashes.fastDigests(rawKey, scheme).map((digest) => ({ ...digest, schemeId: scheme.schemeId })),
  );
  const prefixes = prefixLengths.flatMap((length) => hashes.prefixDigests(rawKey, length));
  if (hashed.length === 0 && prefixes.length === 0) return null;
  const lookup = { keyId: null, digests: digests.map(digestOf), hashes: [...hashed, ...prefixes].map(digestOf) };
  return { lookup, hashed };
}

/** Returns whether a key is stored under the digest of a fast hash of the raw key, in constant time. */
export function isHashed({ hashed }: Candidates, { secrets: [secret] }: VerifiableRecord): boolean {
  if (secret?.hash === undefined || secret.hash.parameters !== null) return false;
  const { schemeId } = secret.hash;
  const { keyId, digest } = secret.digest;
  return hashed.some((one) => one.schemeId === schemeId && one.keyId === keyId && equalBytes(one.digest, digest));
}

function digestOf({ digest }: SecretDigest): Uint8Array {
  return digest;
}

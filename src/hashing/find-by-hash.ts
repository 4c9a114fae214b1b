import { isSameDigest, type SecretDigest } from "../domain/key.ts";
import { type KeyLookup, strictest, type VerifiableRecord } from "../domain/key-lookup.ts";
import type { HashLookups } from "../domain/raw-key-hash.ts";
import type { KeyRing } from "../domain/server-keys.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import { fastDigests, prefixDigests } from "./digest.ts";
import type { HashFormats } from "./hash-formats.ts";
import type { SlowHashes } from "./slow/slow-hashes.ts";

export interface FinderContext {
  /** The ring "secret-digest". */
  readonly ring: KeyRing;
  /** A scheme that has not changed is best the same object: its digest and its HMAC key are memoized. */
  readonly formats: Pick<HashFormats, "lookups" | "lastLookups">;
  readonly slow: Pick<SlowHashes, "matches">;
}

/** Finds every key of a lookup. */
export type FindAll = (lookup: KeyLookup) => MaybePromise<readonly VerifiableRecord[]>;

/** A raw key that is not stored under its own digests. */
export interface PresentedRawKey {
  readonly rawKey: string;
  /** Its own digests, under every server key, the current one first. */
  readonly digests: readonly SecretDigest[];
  /** Names who presents the raw key: wrong raw keys of one source do not delay those of others. */
  readonly source: string;
  readonly findAll: FindAll;
  /** Whether to use the last known hash formats, for stale verdicts: nothing is read. */
  readonly isStale: boolean;
}

export interface FoundByHash {
  readonly stored: VerifiableRecord;
  /** The digest of the hash under which the key is stored; null if it is stored under a digest of the raw key meanwhile. */
  readonly hashDigest: SecretDigest | null;
}

/** Why a slow hash could not be computed: `OVERLOADED` if too many wait. */
export interface HashFailure {
  readonly failure: unknown;
}

/** Finds the key of a raw key by the hash formats in use; null if there is none. Rejects if the database cannot be read. */
export type FindByHash = (presented: PresentedRawKey) => MaybePromise<FoundByHash | HashFailure | null>;

/** Returns the handler of raw keys that are not stored under their own digests. */
export function createFindByHash({ ring, formats, slow }: FinderContext): FindByHash {
  return (presented) => {
    // Malformed Unicode, which is never stored.
    if (presented.digests.length === 0) return null;
    return andThen(presented.isStale ? formats.lastLookups() : formats.lookups(), (lookups) => {
      const { rawKey, digests, findAll } = presented;
      const hashed = lookups.schemes.flatMap((scheme) => fastDigests(rawKey, scheme, ring));
      const prefixes = lookups.prefixLengths.flatMap((length) => prefixDigests(rawKey, length, ring));
      if (hashed.length === 0 && prefixes.length === 0) return null;
      // One read: an adoption at the same time is either seen or not.
      const lookup = { keyId: null, digests: digests.map(bytesOf), hashes: [...hashed, ...prefixes].map(bytesOf) };
      return andThen(findAll(lookup), (records) => {
        const found = choose(records, digests, hashed);
        const salted = records.filter(isSalted);
        if (found !== null || salted.length === 0) return found;
        return findBySlowHash(presented, lookup, salted, lookups, slow);
      });
    });
  };
}

/**
 * Computes slow hashes, and reads the keys again: what was revoked meanwhile is then seen. The second read alone decides which of the keys whose
 * hashes match is still there.
 */
async function findBySlowHash(
  { rawKey, digests, source, findAll }: PresentedRawKey,
  lookup: KeyLookup,
  salted: readonly VerifiableRecord[],
  lookups: HashLookups,
  slow: FinderContext["slow"],
): Promise<FoundByHash | HashFailure | null> {
  let matching: readonly VerifiableRecord[];
  try {
    matching = await matchSlow(rawKey, salted, lookups, slow, source);
  } catch (failure) {
    return { failure };
  }
  const [first] = matching;
  if (first === undefined) return null;
  const records = await findAll({ ...lookup, matchedKeyId: first.key.keyId });
  return choose(records, digests, matching.flatMap(secretDigests));
}

/**
 * Returns the keys with slow hashes of the raw key. Computes all hashes, one at a time: which key decides must not depend on their order. Looks at
 * nothing of a key but its hash: who knows only a prefix learns nothing else about it.
 */
async function matchSlow(
  rawKey: string,
  salted: readonly VerifiableRecord[],
  { schemes }: HashLookups,
  slow: FinderContext["slow"],
  source: string,
): Promise<readonly VerifiableRecord[]> {
  const matching: VerifiableRecord[] = [];
  for (const record of salted) {
    const [secret] = record.secrets;
    const scheme = schemes.find(({ schemeId }) => schemeId === secret?.hash?.schemeId);
    if (secret === undefined || scheme === undefined) continue;
    if (await slow.matches(rawKey, scheme, secret, source)) matching.push(record);
  }
  return matching;
}

/** Returns the stored digests of slow hashes of each raw key, whatever the state of their keys. Computes one hash at a time. */
export async function findSlowDigests(
  { ring, formats, slow }: FinderContext,
  rawKeys: readonly string[],
  findAll: FindAll,
): Promise<ReadonlyMap<string, readonly SecretDigest[]>> {
  const lookups = await formats.lookups();
  const reads = rawKeys.map((rawKey) => {
    const prefixes = lookups.prefixLengths.flatMap((length) => prefixDigests(rawKey, length, ring));
    return prefixes.length === 0 ? [] : findAll({ keyId: null, digests: [], hashes: prefixes.map(bytesOf) });
  });
  const found = new Map<string, readonly SecretDigest[]>();
  for (const [place, records] of (await Promise.all(reads)).entries()) {
    const rawKey = rawKeys[place] ?? "";
    const matching = await matchSlow(rawKey, records.filter(isSalted), lookups, slow, "import");
    found.set(rawKey, matching.flatMap(secretDigests));
  }
  return found;
}

/** Chooses the key that is stored under a digest of the raw key itself, otherwise one that is stored under the digest of a hash. */
function choose(
  records: readonly VerifiableRecord[],
  own: readonly SecretDigest[],
  hashes: readonly SecretDigest[],
): FoundByHash | null {
  const stored = strictest(records.filter((record) => isStoredUnder(own, record)));
  if (stored !== null) return { stored, hashDigest: null };
  const hashed = strictest(records.filter((record) => isStoredUnder(hashes, record)));
  const [hashDigest] = hashed === null ? [] : secretDigests(hashed);
  return hashed === null || hashDigest === undefined ? null : { stored: hashed, hashDigest };
}

/** Compares in constant time. */
function isStoredUnder(digests: readonly SecretDigest[], record: VerifiableRecord): boolean {
  return secretDigests(record).some((stored) => digests.some((digest) => isSameDigest(digest, stored)));
}

/** Returns whether a key has a slow hash: a prefix finds it, and so do other raw keys. */
export function isSalted({ secrets: [secret] }: VerifiableRecord): boolean {
  return typeof secret?.hash?.parameters === "string";
}

function secretDigests({ secrets }: VerifiableRecord): readonly SecretDigest[] {
  return secrets.map(({ digest }) => digest);
}

function bytesOf({ digest }: SecretDigest): Uint8Array {
  return digest;
}

import type { StoredKey, VerifiableKey } from "../domain/key.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";

/** Identifies a key by the id in a credential, or by the digests under which a raw key may be stored. */
export interface KeyLookup {
  readonly keyId: string | null;
  /** The digest under the current server key first. */
  readonly digests: readonly Uint8Array[];
  /** The digests by which a key is found of which only a hash is known: those of hashes, and of prefixes. */
  readonly hashes?: readonly Uint8Array[];
  /** The key that the credential has been proven to be, if it is found by a prefix. */
  readonly proven?: string;
}

/** The stored data that verification uses. */
export type VerifiableRecord = StoredKey<VerifiableKey>;

/**
 * Finds keys. Returns the results of each lookup, in order: none, one, or several for a raw key stored under several root secrets by an early
 * release.
 */
export type FindKeys = (lookups: readonly KeyLookup[]) => Promise<(readonly VerifiableRecord[])[]>;

/** The cache mode of a call: `no-cache` reads from the database and updates the cache; `no-store` bypasses it. */
export type CacheMode = "default" | "no-cache" | "no-store";

/** Looks up one key: synchronously in the cache, or by a read. */
export type FindKey = (lookup: KeyLookup, mode: CacheMode) => MaybePromise<VerifiableRecord | null>;

/** Looks up the keys that a raw key may be, by its digests and by those of its hashes and prefixes. */
export type FindCandidates = (lookup: KeyLookup, mode: CacheMode) => MaybePromise<readonly VerifiableRecord[]>;

/** Looks up one key in the cache only; undefined on a miss, or if the cache may not be used. */
export type FindStale = (lookup: KeyLookup) => VerifiableRecord | null | undefined;

/** Invalidates keys that changed or were deleted, and digests of raw keys that were added or removed. */
export interface KeyChange {
  readonly keyIds: readonly string[];
  readonly digests: readonly Uint8Array[];
}

/** Whether the cache and reads may be used (docs/consistency.md). */
export interface VerificationLease {
  /** Whether invalidations are guaranteed: cached entries and reads are then current. */
  readonly isCoherent: () => boolean;
  /**
   * Resolves when a renewal sent after this call has made the lease coherent. Otherwise rejects with `DATABASE_UNAVAILABLE`: the database may be
   * a former primary.
   */
  readonly renewed: () => Promise<void>;
}

/** Returns the cache keys of a lookup: its key id, or its digests with one character per byte. Empty if it can match nothing. */
export function namesOf({ keyId, digests, hashes }: KeyLookup): string[] {
  if (keyId !== null) return [keyId];
  return (hashes === undefined ? digests : [...digests, ...hashes]).map(digestName);
}

/** Returns the key that identifies a lookup: digests of one raw key under several server keys are cached and evicted together. */
export function nameOf({ keyId, digests: [first] }: KeyLookup): string | undefined {
  if (keyId !== null) return keyId;
  return first === undefined ? undefined : digestName(first);
}

/** Returns the key by which reads are coalesced: all names of a lookup by hashes, which differ as new schemes come into use. */
export function readNameOf(lookup: KeyLookup): string | undefined {
  return lookup.hashes === undefined ? nameOf(lookup) : namesOf(lookup).join("") + (lookup.proven ?? "");
}

export function digestName(digest: Uint8Array): string {
  return Buffer.from(digest.buffer, digest.byteOffset, digest.byteLength).toString("latin1");
}

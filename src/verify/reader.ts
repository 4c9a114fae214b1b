import type { KeyLookup, VerifiableRecord } from "../domain/key-lookup.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";

/**
 * Finds keys. Returns the results of each lookup, in order: none, one, or several for a raw key stored under several root secrets by an early
 * release.
 */
export type FindKeys = (lookups: readonly KeyLookup[]) => Promise<(readonly VerifiableRecord[])[]>;

/** The cache mode of a call: `no-cache` reads from the database and updates the cache; `no-store` bypasses it. */
export type CacheMode = "default" | "no-cache" | "no-store";

/** Looks up one key: synchronously in the cache, or by a read. */
export type FindKey = (lookup: KeyLookup, mode: CacheMode) => MaybePromise<VerifiableRecord | null>;

/** Looks up every key that matches: synchronously in the cache, or by a read. */
export type FindKeysOf = (lookup: KeyLookup, mode: CacheMode) => MaybePromise<readonly VerifiableRecord[]>;

/** Looks up one key in the cache only; undefined on a miss, or if the cache may not be used. */
export type FindCached = (lookup: KeyLookup) => VerifiableRecord | null | undefined;

/** Invalidates keys that changed or were deleted, digests of raw keys that were added or removed, and all keys of actors whose limits changed. */
export interface KeyChange {
  readonly keyIds: readonly string[];
  readonly digests: readonly Uint8Array[];
  readonly actorIds?: readonly string[];
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
  return lookup.hashes === undefined ? nameOf(lookup) : namesOf(lookup).join("") + (lookup.matchedKeyId ?? "");
}

export function digestName(digest: Uint8Array): string {
  return Buffer.from(digest.buffer, digest.byteOffset, digest.byteLength).toString("latin1");
}

import type { StoredKey, VerifiableKey } from "../domain/key.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";

/** How a key is found: by the identifier that a credential carries, or by the digests that a raw key may be stored under. */
export interface KeyLookup {
  readonly keyId: string | null;
  /** The one under the current server key first. */
  readonly digests: readonly Uint8Array[];
}

/** What verification knows of a key. */
export type VerifiableRecord = StoredKey<VerifiableKey>;

/**
 * Where verification finds keys. Returns what each look-up found, in order: nothing, one key, or, for a raw key that was stored under
 * several root secrets before releases prevented that, several.
 */
export type FindKeys = (lookups: readonly KeyLookup[]) => Promise<(readonly VerifiableRecord[])[]>;

/** What a caller asks of the cache (contract §5): the default; `no-cache`: a fresh read, written back; `no-store`: neither read nor written. */
export type CacheMode = "default" | "no-cache" | "no-store";

/** One look-up: from memory at once, or by a read. */
export type FindKey = (lookup: KeyLookup, mode: CacheMode) => MaybePromise<VerifiableRecord | null>;

/** One look-up in memory alone, while it may be used although the lease is over; undefined: it may not, or it has nothing. */
export type FindStale = (lookup: KeyLookup) => VerifiableRecord | null | undefined;

/** What is no longer so: these keys changed or went, and these digests of raw keys came or went. */
export interface KeyChange {
  readonly keyIds: readonly string[];
  readonly digests: readonly Uint8Array[];
}

/** The right to answer from memory, and by what was read (docs/consistency.md). */
export interface VerificationLease {
  /** Whether this node hears of every change, or is waited for: what is in memory is so, and what it reads is so for every node. */
  readonly isCoherent: () => boolean;
  /**
   * Resolves when that holds by a renewal that was sent after this call. Rejects with `DATABASE_UNAVAILABLE`: without it the database that is
   * read may be one that all others have left.
   */
  readonly renewed: () => Promise<void>;
}

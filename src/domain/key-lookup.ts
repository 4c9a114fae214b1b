import type { StoredKey, VerifiableKey } from "./key.ts";
import type { ActorLimits } from "./rate-limit.ts";

/** Identifies a key by the id in a credential, or by the digests under which a raw key may be stored. */
export interface KeyLookup {
  readonly keyId: string | null;
  /** The digest under the current server key first. */
  readonly digests: readonly Uint8Array[];
  /** The digests of hashes and of prefixes, which find keys of which only a hash is known. */
  readonly hashes?: readonly Uint8Array[];
  /** The key whose slow hash matches the credential, if a prefix finds it. */
  readonly matchedKeyId?: string;
  /** Whether a token names the key, so that other tokens of it will look it up too. */
  readonly isParent?: boolean;
}

/** The stored data that verification uses. */
export type VerifiableRecord = StoredKey<VerifiableKey> & {
  /** Undefined: the actor has none. */
  readonly actorLimits?: ActorLimits | undefined;
  /** Undefined: it must not be cached. */
  stamp?: Stamp;
};

/** Which changes what was read of a key includes: those counted in three buckets (`verify/cache/epochs.ts`). */
export interface Stamp {
  readonly ofKey: number;
  readonly ofName: number;
  readonly ofActor: number;
  readonly count: number;
}

/**
 * Returns the record that determines the verdict on a raw key with several: a revoked one, else the first to expire, else the oldest. A raw key
 * thus becomes invalid with the first of its records, regardless of the current root secret. Returns null without records.
 */
export function strictest(records: readonly VerifiableRecord[]): VerifiableRecord | null {
  return records.toSorted(compare)[0] ?? null;
}

function compare({ key: a }: VerifiableRecord, { key: b }: VerifiableRecord): number {
  const byRevocation = Number(b.revokeTime !== null) - Number(a.revokeTime !== null);
  return byRevocation || timeOf(a.expireTime) - timeOf(b.expireTime) || (a.keyId < b.keyId ? -1 : 1);
}

function timeOf(time: Date | null): number {
  return time?.getTime() ?? Number.MAX_SAFE_INTEGER;
}

import type { StoredKey } from "../record/key.ts";

/** How a key is found: by the identifier that a credential carries, or by the digests that a raw key may be stored under. */
export interface KeyLookup {
  readonly keyId: string | null;
  readonly digests: readonly Uint8Array[];
}

/** Where verification finds keys. Answers in the order of the look-ups; null for one that is not there. */
export type FindKeys = (lookups: readonly KeyLookup[]) => Promise<(StoredKey | null)[]>;

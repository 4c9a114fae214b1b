import type { KeyLookup, VerifiableRecord } from "../../domain/key-lookup.ts";
import type { KeyChange } from "../reader.ts";
import { digestName, nameOf } from "../reader.ts";
import { keyIdText, writeKeyId } from "./codec.ts";
import { decodeRecord, encodeRecord } from "./key-codec.ts";
import type { ByteCacheOptions } from "./store/byte-cache.ts";
import { type Codec, TwoTierCache } from "./two-tier-cache.ts";

const RECORDS: Codec<VerifiableRecord> = {
  writeKey: (name, into) => writeKeyId(name, into, 0),
  encode: encodeRecord,
  decode: decodeRecord,
};

const KEY_IDS: Codec<string> = {
  writeKey: (name, into) => into.write(name, 0, "latin1"),
  encode: (keyId, into) => writeKeyId(keyId, into, 0),
  decode: (_name, bytes) => keyIdText(bytes, 0),
};

/**
 * Returns whether a lookup has found a key by a prefix alone, which wrong raw keys have too: they would evict the names of others, and another
 * key with the raw key could not be noticed.
 */
function isByPrefix({ hashes, matchedKeyId }: KeyLookup, { key, secrets: [secret] }: VerifiableRecord): boolean {
  return hashes !== undefined && typeof secret?.hash?.parameters === "string" && matchedKeyId !== key.keyId;
}

/** Caches keys by id. A raw key finds its id by a digest, which is only a hint: `evaluate` compares the digests again. */
export class KeyCache {
  readonly records: TwoTierCache<VerifiableRecord>;
  readonly keyIds: TwoTierCache<string>;

  constructor(records: ByteCacheOptions, keyIds: ByteCacheOptions) {
    this.records = new TwoTierCache(RECORDS, records);
    this.keyIds = new TwoTierCache(KEY_IDS, keyIds);
  }

  get(lookup: KeyLookup): VerifiableRecord | undefined {
    const name = nameOf(lookup);
    const keyId = lookup.keyId === null && name !== undefined ? this.keyIds.get(name) : name;
    return keyId === undefined ? undefined : this.records.get(keyId);
  }

  /** Caches the result of a lookup; null if nothing was found. */
  set(lookup: KeyLookup, stored: VerifiableRecord | null): void {
    const name = nameOf(lookup);
    if (stored !== null) this.records.set(stored.key.keyId, stored);
    if (name === undefined || (stored !== null && isByPrefix(lookup, stored))) return;
    if (stored === null) (lookup.keyId === null ? this.keyIds : this.records).delete(name);
    else if (lookup.keyId === null) this.keyIds.set(name, stored.key.keyId);
  }

  invalidate({ keyIds, digests }: KeyChange): void {
    for (const keyId of keyIds) this.records.delete(keyId);
    for (const digest of digests) this.keyIds.delete(digestName(digest));
  }

  clear(): void {
    this.records.clear();
    this.keyIds.clear();
  }
}

import type { KeySecret, SecretDigest } from "../../domain/key.ts";
import type { KeyLookup, VerifiableRecord } from "../../domain/key-lookup.ts";
import type { Epochs } from "./epochs.ts";
import { ByteCache, type ByteCacheOptions } from "./store/byte-cache.ts";

/** Caches the keys that tokens name, by id, so that the first verification of a token reads nothing. An entry is current as long as its stamp is. */
export class KeyCache {
  readonly store: ByteCache;
  readonly #epochs: Epochs;

  constructor(epochs: Epochs, options: ByteCacheOptions) {
    this.#epochs = epochs;
    this.store = new ByteCache(options);
  }

  get({ keyId }: KeyLookup): VerifiableRecord | undefined {
    const bytes = keyId === null ? undefined : this.store.get(keyId);
    const stored = bytes && decode(bytes);
    return stored?.stamp !== undefined && this.#epochs.isCurrent(stored.stamp) ? stored : undefined;
  }

  /** Caches the result of a lookup; null if nothing was found. */
  set({ keyId, isParent }: KeyLookup, stored: VerifiableRecord | null): void {
    if (keyId === null) return;
    if (stored !== null && isParent === true) this.store.set(keyId, encode(stored));
    else this.store.delete(keyId);
  }

  delete(keyId: string): void {
    this.store.delete(keyId);
  }

  clear(): void {
    this.store.clear();
  }
}

/** As JSON: times in ISO 8601, digests in hexadecimal. */
function encode({ key, secrets, ...others }: VerifiableRecord): Buffer {
  const hex = ({ keyId, digest }: SecretDigest) => ({ keyId, digest: Buffer.from(digest).toString("hex") });
  return Buffer.from(
    JSON.stringify({ ...others, key, secrets: secrets.map((one) => ({ ...one, digest: hex(one.digest) })) }),
  );
}

function decode(bytes: Buffer): VerifiableRecord {
  const { key, secrets, ...others } = JSON.parse(bytes.toString());
  const times = Object.fromEntries(TIMES.map((name) => [name, dateOf(key[name])]));
  return { ...others, key: { ...key, ...times }, secrets: secrets.map(decodeSecret) };
}

const TIMES = ["expireTime", "revokeTime", "disableTime"] as const;

function decodeSecret({ digest, expireTime, ...secret }: EncodedSecret): KeySecret {
  return {
    ...secret,
    digest: { ...digest, digest: Buffer.from(digest.digest, "hex") },
    expireTime: dateOf(expireTime),
  };
}

type EncodedSecret = Omit<KeySecret, "digest" | "expireTime"> & {
  readonly digest: { readonly keyId: string; readonly digest: string };
  readonly expireTime: string | null;
};

function dateOf(time: string | null): Date | null {
  return time === null ? null : new Date(time);
}

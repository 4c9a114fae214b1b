import type { KeyObject } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { KeyRing, ServerKey } from "../domain/server-keys.ts";
import type { Random } from "../lib/random.ts";
import type { AlgorithmName } from "./jwt/algorithms.ts";
import { KEY_TYPES, type PublicSigningJwk, type SigningKeyType } from "./signing-key-type.ts";
import { cannotUnwrap, unwrapPrivateKey, wrapPrivateKey } from "./signing-key-wrap.ts";

/** A stored signing key. */
export interface SigningKeyRecord {
  readonly kid: string;
  readonly publicJwk: PublicSigningJwk;
  /** The wrapped private key (`signing-key-wrap.ts`). */
  readonly wrapped: Uint8Array;
  /** `id` of the server key that wraps it. */
  readonly wrapKeyId: string;
  readonly createTime: Date;
  /** When it stopped signing; null while active. */
  readonly retireTime: Date | null;
  /** Latest expiry of a token signed with it; null if there is none. */
  readonly tokensExpireTime: Date | null;
}

export type NewSigningKey = Pick<SigningKeyRecord, "kid" | "publicJwk" | "wrapped" | "wrapKeyId">;

export interface GenerateOptions {
  /** Algorithm of the key. */
  readonly algorithm: AlgorithmName;
  /** The server key of the label `signing-key-wrap`. */
  readonly wrapKey: ServerKey;
  readonly random: Random;
}

/** Generates a key with its private half wrapped. */
export function generateSigningKey({ algorithm, wrapKey, random }: GenerateOptions): NewSigningKey {
  const { generate, toPrivateKey, toPublicJwk, wrapVersion } = KEY_TYPES[algorithm];
  const privateKey = generate(random);
  const publicJwk = toPublicJwk(toPrivateKey(privateKey));
  const { kid } = publicJwk;
  const wrapped = wrapPrivateKey({ privateKey, kid, wrapKey, random, version: wrapVersion });
  return { kid, publicJwk, wrapped, wrapKeyId: wrapKey.id };
}

/**
 * Unwraps the private key of a record. Throws `INTERNAL`, naming the `kid` and nothing secret, if the ring lacks the wrapping key, the record
 * was altered, its public key does not match, or its algorithm is one of a later release.
 */
export function unwrapSigningKey(record: NewSigningKey, ring: Pick<KeyRing, "find">): KeyObject {
  const { toPrivateKey, toPublicJwk, wrapVersion } = keyType(record);
  const privateKey = toPrivateKey(unwrapPrivateKey(record, wrapVersion, ring));
  if (isDeepStrictEqual(toPublicJwk(privateKey), record.publicJwk)) return privateKey;
  throw cannotUnwrap(record.kid, "its public key is not that of its private key");
}

/** Wraps the key under the ring's current key. Throws like `unwrapSigningKey`. */
export function rewrapSigningKey(record: NewSigningKey, ring: KeyRing, random: Random): NewSigningKey {
  unwrapSigningKey(record, ring);
  const { kid, publicJwk } = record;
  const version = keyType(record).wrapVersion;
  const privateKey = unwrapPrivateKey(record, version, ring);
  const wrapped = wrapPrivateKey({ privateKey, kid, wrapKey: ring.current, random, version });
  return { kid, publicJwk, wrapped, wrapKeyId: ring.current.id };
}

/** Returns whether a key may still verify: it signs, or a token signed with it has not expired. `now` is in milliseconds. */
export function isInUse(record: SigningKeyRecord, now: number): boolean {
  return record.retireTime === null || (record.tokensExpireTime?.getTime() ?? 0) > now;
}

/** Sorts newest first, then by `kid`, so that every node has the same order. */
export function newestFirst(records: readonly SigningKeyRecord[]): SigningKeyRecord[] {
  return records.toSorted(
    (a, b) => b.createTime.getTime() - a.createTime.getTime() || Buffer.compare(Buffer.from(a.kid), Buffer.from(b.kid)),
  );
}

/** The row comes from a database, to which a later release may have written. */
function keyType({ kid, publicJwk }: NewSigningKey): SigningKeyType {
  const type = Object.entries(KEY_TYPES).find(([name]) => name === publicJwk.alg)?.[1];
  if (type === undefined) throw cannotUnwrap(kid, `this release does not know its algorithm ${publicJwk.alg}`);
  return type;
}

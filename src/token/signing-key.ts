import type { KeyObject } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { KeyRing, ServerKey } from "../domain/server-keys.ts";
import {
  cannotUnwrap,
  rewrapSecret,
  unwrapSecret,
  type WrapPurpose,
  type Wrapped,
  wrapSecret,
} from "../domain/wrapped-secret.ts";
import type { Random } from "../lib/random.ts";
import {
  ALGORITHMS,
  type AlgorithmName,
  PRIVATE_KEY_SIZE,
  type PublicSigningJwk,
  type SignatureAlgorithm,
  toPrivateKey,
  toPublicJwk,
} from "./jwt/algorithms.ts";

export interface SigningKeyRecord extends NewSigningKey {
  readonly createTime: Date;
  /** When it stopped signing; null while active. */
  readonly retireTime: Date | null;
  /** Latest expiry of a token signed with it; null if there is none. */
  readonly tokensExpireTime: Date | null;
}

/** A signing key with its private key wrapped. */
export interface NewSigningKey extends Wrapped {
  readonly kid: string;
  readonly publicJwk: PublicSigningJwk;
}

/** Generates a key with its private half wrapped under a server key of the label `signing-key-wrap`. */
export function generateSigningKey(algorithm: AlgorithmName, wrapKey: ServerKey, random: Random): NewSigningKey {
  const type = ALGORITHMS[algorithm];
  const privateKey = type.generate(random);
  const publicJwk = toPublicJwk(type, toPrivateKey(type, privateKey));
  const { kid } = publicJwk;
  return { kid, publicJwk, ...wrapSecret(privateKey, purposeOf(kid, type), wrapKey, random) };
}

/**
 * Unwraps the private key of a record. Throws `INTERNAL`, naming the `kid` and nothing secret, if the ring lacks the wrapping key, the record
 * was altered, its public key does not match, or its algorithm is one of a later release.
 */
export function unwrapSigningKey(record: NewSigningKey, ring: Pick<KeyRing, "find">): KeyObject {
  const algorithm = algorithmOf(record);
  const purpose = purposeOf(record.kid, algorithm);
  const privateKey = toPrivateKey(algorithm, unwrapSecret(record, purpose, ring));
  if (isDeepStrictEqual(toPublicJwk(algorithm, privateKey), record.publicJwk)) return privateKey;
  throw cannotUnwrap(purpose, "its public key does not match its private key");
}

/** Wraps the key under the ring's current key. Throws like `unwrapSigningKey`. */
export function rewrapSigningKey(record: NewSigningKey, ring: KeyRing, random: Random): NewSigningKey {
  unwrapSigningKey(record, ring);
  const { kid, publicJwk } = record;
  const purpose = purposeOf(kid, algorithmOf(record));
  return { kid, publicJwk, ...rewrapSecret(record, purpose, ring, random) };
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
function algorithmOf({ kid, publicJwk: { alg } }: NewSigningKey): SignatureAlgorithm {
  if (Object.hasOwn(ALGORITHMS, alg)) return ALGORITHMS[alg];
  throw cannotUnwrap({ ...PURPOSE, name: kid }, `this release does not support its algorithm ${alg}`);
}

/** For the operator of a server that cannot start. */
const REMEDY =
  "Configure that root secret as a retired root secret and run `keyhold signing-keys rotate` before you remove it; if the root secret is lost, run `keyhold signing-keys rotate --force` to create a new signing key: tokens signed with the old key are then rejected";

const PURPOSE = { purpose: "signing key", size: PRIVATE_KEY_SIZE, remedy: REMEDY } as const;

function purposeOf(kid: string, { wrapVersion }: SignatureAlgorithm): WrapPurpose {
  return { ...PURPOSE, name: kid, version: wrapVersion };
}

import { createPublicKey, type KeyObject } from "node:crypto";
import type { KeyRing } from "../../domain/server-keys.ts";
import { isInUse, newestFirst, type SigningKeyRecord, unwrapSigningKey } from "../signing-key.ts";
import { ALGORITHMS, type SignatureAlgorithm } from "./algorithms.ts";

/** The unwrapped signing keys of a node. Immutable: new records are loaded into a new set. */
export interface SigningKeys {
  /** The key that signs; undefined if there is none. */
  readonly active: UnwrappedKey | undefined;
  /** Public keys for verification, by `kid`. */
  readonly verification: ReadonlyMap<string, VerificationKey>;
  /** The records of `verification`, for `jwksDocument`. */
  readonly records: readonly SigningKeyRecord[];
  /** `kid` of each retired key that could not be unwrapped: its tokens are rejected, which should be logged. */
  readonly unusable: readonly string[];
}

export interface ActiveSigningKey {
  readonly kid: string;
  readonly algorithm: SignatureAlgorithm;
  readonly privateKey: KeyObject;
}

/** A public key with the only algorithm that it may verify (RFC 8725 §3.1). */
export interface VerificationKey {
  readonly algorithm: SignatureAlgorithm;
  readonly publicKey: KeyObject;
}

export interface UnwrappedKey extends ActiveSigningKey {
  readonly record: SigningKeyRecord;
}

/**
 * Unwraps the keys in use at `now` (milliseconds); the newest active one signs. A public key is trusted only if its own private key unwraps,
 * so that write access to the database alone adds no signer. Throws `INTERNAL` like `unwrapSigningKey` if an active key cannot be unwrapped:
 * the root secret is wrong. A retired one is left out, as after its root secret was dropped.
 */
export function loadSigningKeys(
  records: readonly SigningKeyRecord[],
  ring: Pick<KeyRing, "find">,
  now: number,
): SigningKeys {
  const inUse = newestFirst(records.filter((record) => isInUse(record, now)));
  const keys = inUse.flatMap((record) => unwrapIfUsable(record, ring));
  const verification = new Map(
    keys.map(({ kid, algorithm, privateKey }) => [kid, { algorithm, publicKey: createPublicKey(privateKey) }]),
  );
  return {
    active: keys.find(({ record }) => record.retireTime === null),
    verification,
    records: keys.map(({ record }) => record),
    unusable: inUse.map(({ kid }) => kid).filter((kid) => !verification.has(kid)),
  };
}

/** Returns one key, or none if it is retired and cannot be unwrapped. */
function unwrapIfUsable(record: SigningKeyRecord, ring: Pick<KeyRing, "find">): UnwrappedKey[] {
  try {
    const privateKey = unwrapSigningKey(record, ring);
    return [{ kid: record.kid, algorithm: ALGORITHMS[record.publicJwk.alg], privateKey, record }];
  } catch (error) {
    if (record.retireTime === null) throw error;
    return [];
  }
}

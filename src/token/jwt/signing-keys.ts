import { createPublicKey, type KeyObject } from "node:crypto";
import type { KeyRing } from "../../domain/server-keys.ts";
import { isInUse, newestFirst, type SigningKeyRecord, unwrapSigningKey } from "../signing-key.ts";

/** The unwrapped signing keys of a node. Immutable: new records are loaded into a new set. */
export interface SigningKeys {
  /** The key that signs; undefined if there is none. */
  readonly active: ActiveSigningKey | undefined;
  /** Public keys for verification, by `kid`. */
  readonly verification: ReadonlyMap<string, KeyObject>;
  /** The records of `verification`, for `jwksDocument`. */
  readonly records: readonly SigningKeyRecord[];
  /** `kid` of each retired key that could not be unwrapped: its tokens are rejected, which should be logged. */
  readonly unusable: readonly string[];
}

export interface ActiveSigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
}

interface UnwrappedKey extends ActiveSigningKey {
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
  const verification = new Map(keys.map(({ kid, privateKey }) => [kid, createPublicKey(privateKey)]));
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
    return [{ kid: record.kid, privateKey: unwrapSigningKey(record, ring), record }];
  } catch (error) {
    if (record.retireTime === null) throw error;
    return [];
  }
}

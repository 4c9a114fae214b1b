import { createPublicKey, type KeyObject } from "node:crypto";
import type { KeyRing } from "../../domain/server-keys.ts";
import { isInUse, newestFirst, type SigningKeyRecord, unwrapSigningKey } from "../signing-key.ts";

/** The signing keys of a node, in memory. A set does not change: a node that hears of new records loads another. */
export interface SigningKeys {
  /** The key that signs; undefined if there is none yet. */
  readonly active: ActiveSigningKey | undefined;
  /** The public keys of all that may verify, by `kid`. */
  readonly verification: ReadonlyMap<string, KeyObject>;
  /** The records behind `verification`, for `jwksDocument`. */
  readonly records: readonly SigningKeyRecord[];
  /** `kid` of each retired key that could not be unwrapped: its tokens are refused, which is worth a line in the log. */
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
 * The keys in use at `now` (milliseconds), the newest that is not retired being active. A public key is trusted only
 * if its own private key unwraps, so that write access to the database without the root secret adds none. Throws
 * `INTERNAL` as `unwrapSigningKey` does if a key that is not retired cannot be unwrapped: the root secret is wrong. A
 * retired one is left out instead, as after a root secret was given up on purpose.
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

/** One key, or none. */
function unwrapIfUsable(record: SigningKeyRecord, ring: Pick<KeyRing, "find">): UnwrappedKey[] {
  try {
    return [{ kid: record.kid, privateKey: unwrapSigningKey(record, ring), record }];
  } catch (error) {
    if (record.retireTime === null) throw error;
    return [];
  }
}

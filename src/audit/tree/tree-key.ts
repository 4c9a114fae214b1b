import { createPublicKey, type KeyObject } from "node:crypto";
import type { KeyRing } from "../../domain/server-keys.ts";
import {
  isWrappedByRetired,
  rewrapSecret,
  unwrapSecret,
  type WrapPurpose,
  type Wrapped,
  wrapSecret,
} from "../../domain/wrapped-secret.ts";
import type { Random } from "../../lib/random.ts";
import { ALGORITHMS, PRIVATE_KEY_SIZE, toPrivateKey } from "../../token/jwt/algorithms.ts";
import { verifierKey } from "./note.ts";

/** The key that signs checkpoints: Ed25519, the private key wrapped under a server key of the label `signing-key-wrap`. */
export interface TreeKey extends Wrapped {
  readonly verifierKey: string;
}

interface TreeKeyContext {
  readonly store: {
    head(): Promise<{ readonly key: TreeKey | null }>;
    /** Replaces the wrapped form of the key if it is still wrapped under the server key `before`. */
    rewrapKey(key: TreeKey, before: string): Promise<void>;
  };
  readonly ring: KeyRing;
  readonly random: Random;
}

export function generateTreeKey(origin: string, ring: KeyRing, random: Random): TreeKey {
  const seed = ALGORITHMS.EdDSA.generate(random);
  const name = verifierKey(origin, createPublicKey(toPrivateKey(ALGORITHMS.EdDSA, seed)));
  return { verifierKey: name, ...wrapSecret(seed, purposeOf(name), ring.current, random) };
}

/** Throws `INTERNAL` with a remedy, and nothing secret. */
export function unwrapTreeKey(key: TreeKey, ring: Pick<KeyRing, "find">): KeyObject {
  return toPrivateKey(ALGORITHMS.EdDSA, unwrapSecret(key, purposeOf(key.verifierKey), ring));
}

/**
 * Rewraps the key, if a retired root secret protects it, under the current one, which all servers must know. Returns the number of keys. One that
 * does not unwrap is left unchanged.
 */
export async function rewrapTreeKey({ store, ring, random }: TreeKeyContext): Promise<number> {
  const { key } = await store.head();
  if (key === null || !isWrappedByRetired(key, ring)) return 0;
  const rewrapped = rewrapSecret(key, purposeOf(key.verifierKey), ring, random);
  await store.rewrapKey({ ...key, ...rewrapped }, key.wrapKeyId);
  return 1;
}

/** For the operator of a server that cannot sign checkpoints. */
const REMEDY =
  "Configure that root secret as a retired root secret and run `keyhold secrets promote`; if the root secret is lost, delete the key as the owner of the database (DELETE FROM audit_tree_key): servers create a new one";

function purposeOf(name: string): WrapPurpose {
  return { purpose: "audit log key", name, version: 1, size: PRIVATE_KEY_SIZE, remedy: REMEDY };
}

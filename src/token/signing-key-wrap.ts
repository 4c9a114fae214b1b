import { createCipheriv, createDecipheriv } from "node:crypto";
import { KeyholdError } from "../domain/errors.ts";
import type { KeyRing, ServerKey } from "../domain/server-keys.ts";
import type { Random } from "../lib/random.ts";

/** The private key of Ed25519 is any 32 random bytes (RFC 8032 §5.1.5). */
export const SEED_SIZE = 32;

/**
 * The stored form of a private key, version 1: one byte 0x01, a nonce of 12 bytes, the 32 bytes of the Ed25519 seed
 * encrypted, a tag of 16 bytes; AES-256-GCM (NIST SP 800-38D). The nonce is random (§8.2.2), sound for 2^32 keys (§8.3).
 */
const VERSION = 1;
const CIPHER = "aes-256-gcm";
const NONCE_SIZE = 12;
const TAG_SIZE = 16;
const SEED_AT = 1 + NONCE_SIZE;
const TAG_AT = SEED_AT + SEED_SIZE;
const WRAPPED_SIZE = TAG_AT + TAG_SIZE;

/** For whoever starts a server that cannot sign. */
const ADVICE =
  "Give that root secret as a retired one and run `keyhold signing-keys rotate` before dropping it; if it is lost, `keyhold signing-keys rotate --force` makes a new signing key all the same, and tokens of the old one are refused";

export interface WrapInput {
  readonly seed: Uint8Array;
  readonly kid: string;
  readonly wrapKey: ServerKey;
  readonly random: Random;
}

export function wrapSeed({ seed, kid, wrapKey, random }: WrapInput): Uint8Array {
  const nonce = random.bytes(NONCE_SIZE);
  const cipher = createCipheriv(CIPHER, wrapKey.secret, nonce, { authTagLength: TAG_SIZE });
  cipher.setAAD(additionalData(kid, wrapKey.id));
  const encrypted = Buffer.concat([cipher.update(seed), cipher.final()]);
  return Buffer.concat([Uint8Array.of(VERSION), nonce, encrypted, cipher.getAuthTag()]);
}

/** The seed, or an `INTERNAL` error that says why there is none and holds nothing of it. */
export function unwrapSeed(
  { kid, wrapped, wrapKeyId }: { kid: string; wrapped: Uint8Array; wrapKeyId: string },
  ring: Pick<KeyRing, "find">,
): Uint8Array {
  const wrapKey = ring.find(wrapKeyId);
  if (wrapKey === undefined)
    throw cannotUnwrap(kid, `no root secret given, current or retired, is the one it was wrapped under. ${ADVICE}`);
  if (wrapped[0] !== VERSION || wrapped.length !== WRAPPED_SIZE)
    throw cannotUnwrap(kid, "its stored form is not known");
  try {
    return decrypt(wrapped, wrapKey, additionalData(kid, wrapKeyId));
  } catch {
    throw cannotUnwrap(kid, "it was altered, or wrapped under another root secret");
  }
}

export function cannotUnwrap(kid: string, why: string): KeyholdError {
  return new KeyholdError("INTERNAL", `the signing key ${kid} cannot be unwrapped: ${why}`);
}

/** Without the tag length Node takes a tag of four bytes as well, which is guessed more easily. */
function decrypt(wrapped: Uint8Array, wrapKey: ServerKey, aad: Uint8Array): Uint8Array {
  const decipher = createDecipheriv(CIPHER, wrapKey.secret, wrapped.subarray(1, SEED_AT), { authTagLength: TAG_SIZE });
  decipher.setAAD(aad);
  decipher.setAuthTag(wrapped.subarray(TAG_AT));
  return Buffer.concat([decipher.update(wrapped.subarray(SEED_AT, TAG_AT)), decipher.final()]);
}

/** Binds the version, both names and the purpose, so that a wrapped key is of no use under another name. */
function additionalData(kid: string, wrapKeyId: string): Uint8Array {
  return Buffer.from(JSON.stringify(["keyhold signing key", VERSION, wrapKeyId, kid]));
}

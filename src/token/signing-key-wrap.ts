import { createCipheriv, createDecipheriv } from "node:crypto";
import { KeyholdError } from "../domain/errors.ts";
import type { KeyRing, ServerKey } from "../domain/server-keys.ts";
import type { Random } from "../lib/random.ts";

/** Size of an Ed25519 seed, the private key: 32 random bytes (RFC 8032 §5.1.5). */
export const SEED_SIZE = 32;

/**
 * The wrapped form of a private key, version 1: the byte 0x01, a nonce (12 bytes), the encrypted Ed25519 seed (32 bytes) and a tag (16 bytes);
 * AES-256-GCM (NIST SP 800-38D). Random nonces (§8.2.2) are safe for 2^32 keys (§8.3).
 */
const VERSION = 1;
const CIPHER = "aes-256-gcm";
const NONCE_SIZE = 12;
const TAG_SIZE = 16;
const SEED_AT = 1 + NONCE_SIZE;
const TAG_AT = SEED_AT + SEED_SIZE;
const WRAPPED_SIZE = TAG_AT + TAG_SIZE;

/** For the operator of a server that cannot start. */
const ADVICE =
  "Configure that root secret as a retired one and run `keyhold signing-keys rotate` before dropping it; if it is lost, run `keyhold signing-keys rotate --force` to create a new signing key: tokens of the old one are then rejected";

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

/** Decrypts the seed. Throws `INTERNAL` with the reason, without secrets. */
export function unwrapSeed(
  { kid, wrapped, wrapKeyId }: { kid: string; wrapped: Uint8Array; wrapKeyId: string },
  ring: Pick<KeyRing, "find">,
): Uint8Array {
  const wrapKey = ring.find(wrapKeyId);
  if (wrapKey === undefined)
    throw cannotUnwrap(
      kid,
      `no configured root secret, current or retired, is the one it was wrapped under. ${ADVICE}`,
    );
  if (wrapped[0] !== VERSION || wrapped.length !== WRAPPED_SIZE) throw cannotUnwrap(kid, "unknown stored format");
  try {
    return decrypt(wrapped, wrapKey, additionalData(kid, wrapKeyId));
  } catch {
    throw cannotUnwrap(kid, "it was altered, or wrapped under another root secret");
  }
}

export function cannotUnwrap(kid: string, why: string): KeyholdError {
  return new KeyholdError("INTERNAL", `the signing key ${kid} cannot be unwrapped: ${why}`);
}

/** Sets the tag length explicitly: otherwise Node accepts a tag of four bytes, which is easier to guess. */
function decrypt(wrapped: Uint8Array, wrapKey: ServerKey, aad: Uint8Array): Uint8Array {
  const decipher = createDecipheriv(CIPHER, wrapKey.secret, wrapped.subarray(1, SEED_AT), { authTagLength: TAG_SIZE });
  decipher.setAAD(aad);
  decipher.setAuthTag(wrapped.subarray(TAG_AT));
  return Buffer.concat([decipher.update(wrapped.subarray(SEED_AT, TAG_AT)), decipher.final()]);
}

/** Binds version, both ids and purpose, so that a wrapped key cannot be used under another name. */
function additionalData(kid: string, wrapKeyId: string): Uint8Array {
  return Buffer.from(JSON.stringify(["keyhold signing key", VERSION, wrapKeyId, kid]));
}

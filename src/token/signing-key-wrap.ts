import { createCipheriv, createDecipheriv } from "node:crypto";
import { KeyholdError } from "../domain/errors.ts";
import type { KeyRing, ServerKey } from "../domain/server-keys.ts";
import type { Random } from "../lib/random.ts";
import { PRIVATE_KEY_SIZE } from "./signing-key-type.ts";

/**
 * The wrapped form of a private key: a version (1 byte), which also says of which type the key is, a nonce (12 bytes), the encrypted private
 * key (32 bytes) and a tag (16 bytes); AES-256-GCM (NIST SP 800-38D). Random nonces (§8.2.2) are safe for 2^32 keys (§8.3).
 */
const CIPHER = "aes-256-gcm";
const NONCE_SIZE = 12;
const TAG_SIZE = 16;
const KEY_AT = 1 + NONCE_SIZE;
const TAG_AT = KEY_AT + PRIVATE_KEY_SIZE;
const WRAPPED_SIZE = TAG_AT + TAG_SIZE;

/** For the operator of a server that cannot start. */
const ADVICE =
  "Configure that root secret as a retired one and run `keyhold signing-keys rotate` before dropping it; if it is lost, run `keyhold signing-keys rotate --force` to create a new signing key: tokens of the old one are then rejected";

export interface WrapInput {
  readonly privateKey: Uint8Array;
  /** `wrapVersion` of the type of the key (`signing-key-type.ts`). */
  readonly version: number;
  readonly kid: string;
  readonly wrapKey: ServerKey;
  readonly random: Random;
}

export function wrapPrivateKey({ privateKey, version, kid, wrapKey, random }: WrapInput): Uint8Array {
  const nonce = random.bytes(NONCE_SIZE);
  const cipher = createCipheriv(CIPHER, wrapKey.secret, nonce, { authTagLength: TAG_SIZE });
  cipher.setAAD(additionalData(version, kid, wrapKey.id));
  const encrypted = Buffer.concat([cipher.update(privateKey), cipher.final()]);
  return Buffer.concat([Uint8Array.of(version), nonce, encrypted, cipher.getAuthTag()]);
}

/** Decrypts the private key of a type. Throws `INTERNAL` with the reason, without secrets. */
export function unwrapPrivateKey(
  { kid, wrapped, wrapKeyId }: { kid: string; wrapped: Uint8Array; wrapKeyId: string },
  version: number,
  ring: Pick<KeyRing, "find">,
): Uint8Array {
  const wrapKey = ring.find(wrapKeyId);
  if (wrapKey === undefined)
    throw cannotUnwrap(
      kid,
      `no configured root secret, current or retired, is the one it was wrapped under. ${ADVICE}`,
    );
  if (wrapped[0] !== version || wrapped.length !== WRAPPED_SIZE) throw cannotUnwrap(kid, "unknown stored format");
  try {
    return decrypt(wrapped, wrapKey, additionalData(version, kid, wrapKeyId));
  } catch {
    throw cannotUnwrap(kid, "it was altered, or wrapped under another root secret");
  }
}

export function cannotUnwrap(kid: string, why: string): KeyholdError {
  return new KeyholdError("INTERNAL", `the signing key ${kid} cannot be unwrapped: ${why}`);
}

/** Sets the tag length explicitly: otherwise Node accepts a tag of four bytes, which is easier to guess. */
function decrypt(wrapped: Uint8Array, wrapKey: ServerKey, aad: Uint8Array): Uint8Array {
  const decipher = createDecipheriv(CIPHER, wrapKey.secret, wrapped.subarray(1, KEY_AT), { authTagLength: TAG_SIZE });
  decipher.setAAD(aad);
  decipher.setAuthTag(wrapped.subarray(TAG_AT));
  return Buffer.concat([decipher.update(wrapped.subarray(KEY_AT, TAG_AT)), decipher.final()]);
}

/** Binds version, both ids and purpose, so that a wrapped key cannot be used under another name. */
function additionalData(version: number, kid: string, wrapKeyId: string): Uint8Array {
  return Buffer.from(JSON.stringify(["keyhold signing key", version, wrapKeyId, kid]));
}

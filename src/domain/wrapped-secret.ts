import { createCipheriv, createDecipheriv } from "node:crypto";
import type { Random } from "../lib/random.ts";
import { KeyholdError } from "./errors.ts";
import type { KeyRing, ServerKey } from "./server-keys.ts";

/**
 * The wrapped form of a secret: a version (1 byte), a nonce (12 bytes), the encrypted secret and a tag (16 bytes); AES-256-GCM (NIST SP
 * 800-38D). Random nonces (§8.2.2) are safe for 2^32 secrets (§8.3).
 */
const CIPHER = "aes-256-gcm";
const NONCE_SIZE = 12;
const TAG_SIZE = 16;
const SECRET_AT = 1 + NONCE_SIZE;

/** What a secret is for: it cannot be used for another purpose or under another name. */
export interface WrapPurpose {
  readonly purpose: "hmac key" | "hash affixes" | "signing key" | "audit log key" | "webhook secret";
  readonly name: string;
  /** The first byte of the wrapped form. That of a signing key depends on the algorithm. */
  readonly version: number;
  /** Bytes of the secret; absent: any number. */
  readonly size?: number;
  /** What the operator can do if the root secret is not configured any more. */
  readonly remedy?: string;
}

export interface Wrapped {
  readonly wrapped: Uint8Array;
  /** `id` of the server key that wraps it. */
  readonly wrapKeyId: string;
}

/** Encrypts a secret under a server key. */
export function wrapSecret(secret: Uint8Array, purpose: WrapPurpose, key: ServerKey, random: Random): Wrapped {
  const nonce = random.bytes(NONCE_SIZE);
  const cipher = createCipheriv(CIPHER, key.secret, nonce, { authTagLength: TAG_SIZE });
  cipher.setAAD(additionalData(purpose, key.id));
  const encrypted = Buffer.concat([cipher.update(secret), cipher.final()]);
  return {
    wrapped: Buffer.concat([Uint8Array.of(purpose.version), nonce, encrypted, cipher.getAuthTag()]),
    wrapKeyId: key.id,
  };
}

/** Decrypts a secret. Throws `INTERNAL` with the reason, without secrets. */
export function unwrapSecret(
  { wrapped, wrapKeyId }: Wrapped,
  purpose: WrapPurpose,
  ring: Pick<KeyRing, "find">,
): Buffer {
  const key = ring.find(wrapKeyId);
  if (key === undefined) {
    const why = "it was not wrapped with any configured root secret, current or retired";
    throw cannotUnwrap(purpose, purpose.remedy === undefined ? why : `${why}. ${purpose.remedy}`);
  }
  const size = wrapped.length - SECRET_AT - TAG_SIZE;
  if (wrapped[0] !== purpose.version || size < 0 || size !== (purpose.size ?? size))
    throw cannotUnwrap(purpose, "unknown stored format");
  try {
    return decrypt(wrapped, key, additionalData(purpose, wrapKeyId));
  } catch {
    throw cannotUnwrap(purpose, "it was altered, or wrapped with another root secret");
  }
}

/** Returns whether a retired root secret protects a secret, so that it is to be rewrapped. */
export function isWrappedByRetired({ wrapKeyId }: Wrapped, ring: KeyRing): boolean {
  return wrapKeyId !== ring.current.id && ring.find(wrapKeyId) !== undefined;
}

/** Encrypts a secret again, under the current server key of its ring. Throws `INTERNAL` as `unwrapSecret` does. */
export function rewrapSecret(old: Wrapped, purpose: WrapPurpose, ring: KeyRing, random: Random): Wrapped {
  return wrapSecret(unwrapSecret(old, purpose, ring), purpose, ring.current, random);
}

export function cannotUnwrap({ purpose, name }: Pick<WrapPurpose, "purpose" | "name">, why: string): KeyholdError {
  return new KeyholdError("INTERNAL", `the ${purpose} ${name} cannot be unwrapped: ${why}`);
}

/** Sets the tag length explicitly: otherwise Node accepts a tag of four bytes, which is easier to guess. */
function decrypt(wrapped: Uint8Array, key: ServerKey, aad: Uint8Array): Buffer {
  const tagAt = wrapped.length - TAG_SIZE;
  const decipher = createDecipheriv(CIPHER, key.secret, wrapped.subarray(1, SECRET_AT), { authTagLength: TAG_SIZE });
  decipher.setAAD(aad);
  decipher.setAuthTag(wrapped.subarray(tagAt));
  return Buffer.concat([decipher.update(wrapped.subarray(SECRET_AT, tagAt)), decipher.final()]);
}

function additionalData({ purpose, name, version }: WrapPurpose, wrapKeyId: string): Buffer {
  return Buffer.from(JSON.stringify([`keyhold ${purpose}`, version, wrapKeyId, name]));
}

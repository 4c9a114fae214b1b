import { createHash, createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { KeyRing, ServerKey } from "../domain/server-keys.ts";
import type { Random } from "../lib/random.ts";
import { cannotUnwrap, SEED_SIZE, unwrapSeed, wrapSeed } from "./signing-key-wrap.ts";

/** The public half of a signing key (RFC 8037 §2). Contains nothing secret. */
export interface PublicSigningJwk {
  readonly kty: "OKP";
  readonly crv: "Ed25519";
  /** The public key, 32 bytes in base64url. */
  readonly x: string;
  /** The thumbprint of the key itself (RFC 7638), SHA-256 in base64url. */
  readonly kid: string;
  readonly use: "sig";
  readonly alg: "EdDSA";
}

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

/** The PKCS #8 PrivateKeyInfo of Ed25519 up to the seed (RFC 8410 §7). */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

/** Generates an Ed25519 key, with its private half wrapped under `wrapKey` (label `signing-key-wrap`). */
export function generateSigningKey({ wrapKey, random }: { wrapKey: ServerKey; random: Random }): NewSigningKey {
  const seed = random.bytes(SEED_SIZE);
  const publicJwk = toPublicJwk(toPrivateKey(seed));
  const { kid } = publicJwk;
  return { kid, publicJwk, wrapped: wrapSeed({ seed, kid, wrapKey, random }), wrapKeyId: wrapKey.id };
}

/**
 * Unwraps the private key of a record. Throws `INTERNAL`, naming the `kid` and nothing secret, if the ring lacks the wrapping key, the record
 * was altered, or its public key does not match.
 */
export function unwrapSigningKey(record: NewSigningKey, ring: Pick<KeyRing, "find">): KeyObject {
  const privateKey = toPrivateKey(unwrapSeed(record, ring));
  if (isDeepStrictEqual(toPublicJwk(privateKey), record.publicJwk)) return privateKey;
  throw cannotUnwrap(record.kid, "its public key is not that of its private key");
}

/** Wraps the key under the ring's current key. Throws like `unwrapSigningKey`. */
export function rewrapSigningKey(record: NewSigningKey, ring: KeyRing, random: Random): NewSigningKey {
  unwrapSigningKey(record, ring);
  const { kid, publicJwk } = record;
  const wrapped = wrapSeed({ seed: unwrapSeed(record, ring), kid, wrapKey: ring.current, random });
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

/** Returns the SHA-256 JWK thumbprint (RFC 7638 §3, RFC 8037 §2) of an Ed25519 key in base64url. */
export function thumbprint(x: string): string {
  return createHash("sha256")
    .update(JSON.stringify({ crv: "Ed25519", kty: "OKP", x }))
    .digest("base64url");
}

function toPrivateKey(seed: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: "der", type: "pkcs8" });
}

function toPublicJwk(privateKey: KeyObject): PublicSigningJwk {
  const { x } = createPublicKey(privateKey).export({ format: "jwk" });
  if (x === undefined) throw new TypeError("not an Ed25519 key");
  return { kty: "OKP", crv: "Ed25519", x, kid: thumbprint(x), use: "sig", alg: "EdDSA" };
}

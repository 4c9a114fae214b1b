import { createHash, createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { KeyRing, ServerKey } from "../domain/server-keys.ts";
import type { Random } from "../lib/random.ts";
import { cannotUnwrap, SEED_SIZE, unwrapSeed, wrapSeed } from "./signing-key-wrap.ts";

/** The public half of a signing key (RFC 8037 §2). Nothing in it is secret. */
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

/** A signing key as it is stored. */
export interface SigningKeyRecord {
  readonly kid: string;
  readonly publicJwk: PublicSigningJwk;
  /** The private key as `signing-key-wrap.ts` wraps it. */
  readonly wrapped: Uint8Array;
  /** `id` of the server key that it is wrapped under. */
  readonly wrapKeyId: string;
  readonly createTime: Date;
  /** When it stopped signing; null while it signs. */
  readonly retireTime: Date | null;
  /** The latest expiry of a token signed with it; null if it has signed none. */
  readonly tokensExpireTime: Date | null;
}

export type NewSigningKey = Pick<SigningKeyRecord, "kid" | "publicJwk" | "wrapped" | "wrapKeyId">;

/** PrivateKeyInfo of Ed25519 up to the 32 bytes of the seed (RFC 8410 §7). */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

/** A new Ed25519 key, its private half already wrapped under `wrapKey` (label `signing-key-wrap`). */
export function generateSigningKey({ wrapKey, random }: { wrapKey: ServerKey; random: Random }): NewSigningKey {
  const seed = random.bytes(SEED_SIZE);
  const publicJwk = toPublicJwk(toPrivateKey(seed));
  const { kid } = publicJwk;
  return { kid, publicJwk, wrapped: wrapSeed({ seed, kid, wrapKey, random }), wrapKeyId: wrapKey.id };
}

/**
 * The private key of a record. Throws `INTERNAL`, naming the `kid` and nothing secret, if no key of the ring is the one
 * it was wrapped under, if it was altered, or if the record's public key is not its own.
 */
export function unwrapSigningKey(record: NewSigningKey, ring: Pick<KeyRing, "find">): KeyObject {
  const privateKey = toPrivateKey(unwrapSeed(record, ring));
  if (isDeepStrictEqual(toPublicJwk(privateKey), record.publicJwk)) return privateKey;
  throw cannotUnwrap(record.kid, "its public key is not that of its private key");
}

/** The same key, wrapped under the current key of the ring. Throws as `unwrapSigningKey` does. */
export function rewrapSigningKey(record: NewSigningKey, ring: KeyRing, random: Random): NewSigningKey {
  unwrapSigningKey(record, ring);
  const { kid, publicJwk } = record;
  const wrapped = wrapSeed({ seed: unwrapSeed(record, ring), kid, wrapKey: ring.current, random });
  return { kid, publicJwk, wrapped, wrapKeyId: ring.current.id };
}

/** Whether a key may still verify: it signs, or it has signed a token that has not expired. `now` is in milliseconds. */
export function isInUse(record: SigningKeyRecord, now: number): boolean {
  return record.retireTime === null || (record.tokensExpireTime?.getTime() ?? 0) > now;
}

/** Newest first; of two keys of one instant the one with the lesser `kid`, so that every node has the same order. */
export function newestFirst(records: readonly SigningKeyRecord[]): SigningKeyRecord[] {
  return records.toSorted(
    (a, b) => b.createTime.getTime() - a.createTime.getTime() || Buffer.compare(Buffer.from(a.kid), Buffer.from(b.kid)),
  );
}

/** The SHA-256 JWK thumbprint of an Ed25519 key (RFC 7638 §3, members by RFC 8037 §2) in base64url. */
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

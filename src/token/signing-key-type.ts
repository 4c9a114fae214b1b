import { createHash, createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import type { Random } from "../lib/random.ts";
import type { AlgorithmName } from "./jwt/algorithms.ts";

/** The public half of a signing key. Contains nothing secret. */
export type PublicSigningJwk = Ed25519Jwk | P256Jwk;

interface JwkOfSigningKey {
  /** The thumbprint of the key itself (RFC 7638), SHA-256 in base64url. */
  readonly kid: string;
  readonly use: "sig";
}

/** RFC 8037 §2. */
export interface Ed25519Jwk extends JwkOfSigningKey {
  readonly kty: "OKP";
  readonly crv: "Ed25519";
  /** The public key, 32 bytes in base64url. */
  readonly x: string;
  readonly alg: "EdDSA";
}

/** RFC 7518 §6.2.1. */
export interface P256Jwk extends JwkOfSigningKey {
  readonly kty: "EC";
  readonly crv: "P-256";
  /** A coordinate: always 32 bytes, in base64url. */
  readonly x: string;
  readonly y: string;
  readonly alg: "ES256";
}

/** Size of a private key of either type in bytes. */
export const PRIVATE_KEY_SIZE = 32;

/** The keys of one algorithm. */
export interface SigningKeyType {
  /** First byte of a wrapped private key (`domain/wrapped-secret.ts`). */
  readonly wrapVersion: number;
  generate(random: Random): Uint8Array;
  toPrivateKey(bytes: Uint8Array): KeyObject;
  toPublicJwk(privateKey: KeyObject): PublicSigningJwk;
}

/** The PKCS #8 PrivateKeyInfo of Ed25519 up to the seed (RFC 8410 §7). */
const ED25519_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

/** The PKCS #8 PrivateKeyInfo of P-256 up to the private key, without the public key (RFC 5915 §3, RFC 5208 §5). */
const P256_PREFIX = Buffer.from("3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420", "hex");

/** Order of P-256 (FIPS 186-5; SP 800-186 §3.2.1.3). */
const P256_ORDER = Buffer.from("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", "hex");

/** Private key: the seed, 32 random bytes (RFC 8032 §5.1.5). */
const ED25519: SigningKeyType = {
  wrapVersion: 1,
  generate: (random) => random.bytes(PRIVATE_KEY_SIZE),
  toPrivateKey: (seed) => fromPkcs8(ED25519_PREFIX, seed),
  toPublicJwk: (privateKey) => {
    const { x } = createPublicKey(privateKey).export({ format: "jwk" });
    if (x === undefined) throw new TypeError("not an Ed25519 key");
    return {
      kty: "OKP",
      crv: "Ed25519",
      x,
      kid: thumbprint({ crv: "Ed25519", kty: "OKP", x }),
      use: "sig",
      alg: "EdDSA",
    };
  },
};

/** Private key: a number from 1 to the order of the curve, exclusive; big-endian. */
const P256: SigningKeyType = {
  wrapVersion: 2,
  generate: generateScalar,
  toPrivateKey: (scalar) => fromPkcs8(P256_PREFIX, scalar),
  toPublicJwk: (privateKey) => {
    const { x, y } = createPublicKey(privateKey).export({ format: "jwk" });
    if (x === undefined || y === undefined) throw new TypeError("not a P-256 key");
    return {
      kty: "EC",
      crv: "P-256",
      x,
      y,
      kid: thumbprint({ crv: "P-256", kty: "EC", x, y }),
      use: "sig",
      alg: "ES256",
    };
  },
};

export const KEY_TYPES: Readonly<Record<AlgorithmName, SigningKeyType>> = { EdDSA: ED25519, ES256: P256 };

/** Returns the SHA-256 JWK thumbprint in base64url. `members` must be the required ones in the order of their names (RFC 7638 §3.2, §3.3). */
export function thumbprint(members: Readonly<Record<string, string>>): string {
  return createHash("sha256").update(JSON.stringify(members)).digest("base64url");
}

/** Generates a private key by rejection sampling (FIPS 186-5 §A.2.2). A candidate is rejected once in 2^32. */
function generateScalar(random: Random): Uint8Array {
  for (;;) {
    const candidate = random.bytes(PRIVATE_KEY_SIZE);
    if (candidate.some((byte) => byte !== 0) && Buffer.compare(candidate, P256_ORDER) < 0) return candidate;
  }
}

function fromPkcs8(prefix: Uint8Array, privateKey: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([prefix, privateKey]), format: "der", type: "pkcs8" });
}

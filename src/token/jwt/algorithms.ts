import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import type { Random } from "../../lib/random.ts";

/** The JWS signature algorithms (RFC 7518 §3.1) of Keyhold, the default first. `none` and HMAC are not among them (RFC 8725 §3.1). */
export const ALGORITHM_NAMES = ["EdDSA", "ES256"] as const;

export type AlgorithmName = (typeof ALGORITHM_NAMES)[number];

/** The public half of a signing key. Contains nothing secret. */
export interface PublicSigningJwk {
  readonly kty: "OKP" | "EC";
  readonly crv: "Ed25519" | "P-256";
  /** Always 32 bytes, in base64url: the public key of Ed25519 (RFC 8037 §2), or a coordinate (RFC 7518 §6.2.1). */
  readonly x: string;
  /** The second coordinate; absent for Ed25519. */
  readonly y?: string;
  /** The thumbprint of the key itself (RFC 7638), SHA-256 in base64url. */
  readonly kid: string;
  readonly use: "sig";
  readonly alg: AlgorithmName;
}

/** Size of a private key of either algorithm in bytes. */
export const PRIVATE_KEY_SIZE = 32;

/** How an algorithm signs, and its keys. A key has one algorithm, which it never changes. */
export interface SignatureAlgorithm {
  readonly alg: AlgorithmName;
  /** Size of a signature in bytes. */
  readonly signatureSize: number;
  /** First byte of a wrapped private key (`domain/wrapped-secret.ts`). */
  readonly wrapVersion: number;
  /** The PKCS #8 PrivateKeyInfo up to the private key, without the public key. */
  readonly pkcs8Prefix: Buffer;
  generate(random: Random): Uint8Array;
  sign(data: Uint8Array, privateKey: KeyObject): Uint8Array;
  verify(data: Uint8Array, publicKey: KeyObject, signature: Uint8Array): boolean;
}

/** Ed25519 (RFC 8032) under its JWS name (RFC 8037 §3.1). The private key is the seed: 32 random bytes (RFC 8032 §5.1.5). */
const EDDSA: SignatureAlgorithm = {
  alg: "EdDSA",
  signatureSize: 64,
  wrapVersion: 1,
  // RFC 8410 §7.
  pkcs8Prefix: Buffer.from("302e020100300506032b657004220420", "hex"),
  generate: (random) => random.bytes(PRIVATE_KEY_SIZE),
  sign: (data, privateKey) => sign(null, data, privateKey),
  verify: (data, publicKey, signature) => verify(null, data, publicKey, signature),
};

/** The form of a JWS signature: r and s of 32 bytes each (RFC 7518 §3.4), not DER. */
const dsaEncoding = "ieee-p1363";

/**
 * ECDSA with P-256 and SHA-256 (RFC 7518 §3.4). With (r, s), (r, n - s) is valid too, so whoever has a token can write it in a second way.
 * Both are the same token to Keyhold, which identifies a token by `jti`. The private key is a big-endian number from 1 to the order of the curve,
 * exclusive.
 */
const ES256: SignatureAlgorithm = {
  alg: "ES256",
  signatureSize: 64,
  wrapVersion: 2,
  // RFC 5208 §5 and RFC 5915 §3.
  pkcs8Prefix: Buffer.from("3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420", "hex"),
  generate: generateScalar,
  sign: (data, key) => sign("sha256", data, { key, dsaEncoding }),
  verify: (data, key, signature) => verify("sha256", data, { key, dsaEncoding }, signature),
};

export const ALGORITHMS: Readonly<Record<AlgorithmName, SignatureAlgorithm>> = { EdDSA: EDDSA, ES256 };

/** Order of P-256 (FIPS 186-5; SP 800-186 §3.2.1.3). */
const P256_ORDER = Buffer.from("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", "hex");

/** Generates a private key by rejection sampling (FIPS 186-5 §A.2.2). A candidate is rejected once in 2^32. */
function generateScalar(random: Random): Uint8Array {
  for (;;) {
    const candidate = random.bytes(PRIVATE_KEY_SIZE);
    if (candidate.some((byte) => byte !== 0) && Buffer.compare(candidate, P256_ORDER) < 0) return candidate;
  }
}

/** Returns a private key of `PRIVATE_KEY_SIZE` bytes as a key of Node. */
export function toPrivateKey({ pkcs8Prefix }: SignatureAlgorithm, bytes: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([pkcs8Prefix, bytes]), format: "der", type: "pkcs8" });
}

export function toPublicJwk({ alg }: SignatureAlgorithm, privateKey: KeyObject): PublicSigningJwk {
  const { kty, crv, x, y } = createPublicKey(privateKey).export({ format: "jwk" });
  // The required members in the order of their names, as the thumbprint needs them (RFC 7638 §3.2, §3.3).
  const members = { crv, kty, x, ...(y !== undefined && { y }) };
  const kid = createHash("sha256").update(JSON.stringify(members)).digest("base64url");
  return { ...(members as Pick<PublicSigningJwk, keyof typeof members>), kid, use: "sig", alg };
}

import { type KeyObject, sign, verify } from "node:crypto";

/** The JWS signature algorithms (RFC 7518 §3.1) of Keyhold, the default first. `none` and HMAC are not among them (RFC 8725 §3.1). */
export const ALGORITHM_NAMES = ["EdDSA", "ES256"] as const;

export type AlgorithmName = (typeof ALGORITHM_NAMES)[number];

/** How an algorithm signs. A key has one algorithm, which it never changes. */
export interface SignatureAlgorithm {
  readonly alg: AlgorithmName;
  /** Size of a signature in bytes. */
  readonly signatureSize: number;
  sign(data: Uint8Array, privateKey: KeyObject): Uint8Array;
  verify(data: Uint8Array, publicKey: KeyObject, signature: Uint8Array): boolean;
}

/** Ed25519 (RFC 8032) under its JWS name (RFC 8037 §3.1). */
const EDDSA: SignatureAlgorithm = {
  alg: "EdDSA",
  signatureSize: 64,
  sign: (data, privateKey) => sign(null, data, privateKey),
  verify: (data, publicKey, signature) => verify(null, data, publicKey, signature),
};

/** The form of a JWS signature: r and s of 32 bytes each (RFC 7518 §3.4), not DER. */
const dsaEncoding = "ieee-p1363";

/**
 * ECDSA with P-256 and SHA-256 (RFC 7518 §3.4). With (r, s), (r, n - s) is valid too, so whoever has a token can write it in a second way.
 * Both are the same token to Keyhold, which identifies a token by `jti`.
 */
const ES256: SignatureAlgorithm = {
  alg: "ES256",
  signatureSize: 64,
  sign: (data, key) => sign("sha256", data, { key, dsaEncoding }),
  verify: (data, key, signature) => verify("sha256", data, { key, dsaEncoding }, signature),
};

export const ALGORITHMS: Readonly<Record<AlgorithmName, SignatureAlgorithm>> = { EdDSA: EDDSA, ES256 };

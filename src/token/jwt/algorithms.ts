import { type KeyObject, sign, verify } from "node:crypto";

/** A JWS signature algorithm (RFC 7518 §3.1), resolved once from the header. */
export interface SignatureAlgorithm {
  readonly alg: string;
  /** Size of a signature in bytes. */
  readonly signatureSize: number;
  sign(data: Uint8Array, privateKey: KeyObject): Uint8Array;
  verify(data: Uint8Array, publicKey: KeyObject, signature: Uint8Array): boolean;
}

/** Ed25519 (RFC 8032) under its JWS name (RFC 8037 §3.1). */
export const EDDSA: SignatureAlgorithm = {
  alg: "EdDSA",
  signatureSize: 64,
  sign: (data, privateKey) => sign(null, data, privateKey),
  verify: (data, publicKey, signature) => verify(null, data, publicKey, signature),
};

/** All accepted algorithms. `none` and HMAC are not among them, so a token cannot select them (RFC 8725 §3.1). */
export const ALGORITHMS: ReadonlyMap<string, SignatureAlgorithm> = new Map([EDDSA].map((row) => [row.alg, row]));

import { type KeyObject, sign, verify } from "node:crypto";

/** A signature algorithm of JWS (RFC 7518 §3.1), resolved once from the header and then handed down. */
export interface SignatureAlgorithm {
  readonly alg: string;
  /** Bytes of a signature. */
  readonly signatureSize: number;
  sign(data: Uint8Array, privateKey: KeyObject): Uint8Array;
  verify(data: Uint8Array, publicKey: KeyObject, signature: Uint8Array): boolean;
}

/** Ed25519 by RFC 8032 under the name that RFC 8037 §3.1 gives it. */
export const EDDSA: SignatureAlgorithm = {
  alg: "EdDSA",
  signatureSize: 64,
  sign: (data, privateKey) => sign(null, data, privateKey),
  verify: (data, publicKey, signature) => verify(null, data, publicKey, signature),
};

/** All that we accept. `none` and the HMAC algorithms are no rows, so a token cannot choose them (RFC 8725 §3.1). */
export const ALGORITHMS: ReadonlyMap<string, SignatureAlgorithm> = new Map([EDDSA].map((row) => [row.alg, row]));

/** JWTs of ES256 beside those of `jwt.ts`, created like them without the code under test. The key is that of RFC 7515 appendix A.3. */
import { createPrivateKey, createPublicKey, sign } from "node:crypto";
import { SignJWT } from "jose";
import ed25519, { base64url, CLAIMS, HEADER as ED25519_HEADER, KEY as ED25519_KEY, hs256, TOKEN } from "./jwt.ts";
import signingKey from "./jwt-signing-key.json" with { type: "json" };

const { publicJwk: JWK, privateKey } = signingKey.ES256;
const KEY = createPrivateKey({ format: "jwk", key: { ...JWK, d: base64url(Buffer.from(privateKey, "hex")) } });
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const HEADER = { alg: "ES256", typ: "JWT", kid: JWK.kid };

const inputOf = (header: object, claims: object = CLAIMS): string =>
  `${base64url(JSON.stringify(header))}.${base64url(JSON.stringify(claims))}`;
const signatureOf = (input: string): Buffer =>
  sign("sha256", Buffer.from(input), { key: KEY, dsaEncoding: "ieee-p1363" });
const withHeader = (change: object): string => {
  const input = inputOf({ ...HEADER, ...change });
  return `${input}.${base64url(signatureOf(input))}`;
};

const INPUT = inputOf(HEADER);
const SIGNATURE = signatureOf(INPUT);
const [R, S] = [SIGNATURE.subarray(0, 32), SIGNATURE.subarray(32)];
const DER = sign("sha256", Buffer.from(INPUT), KEY);
const withSignature = (...parts: readonly Uint8Array[]): string => `${INPUT}.${base64url(Buffer.concat(parts))}`;
const bytesOf = (number: bigint): Buffer => Buffer.from(number.toString(16).padStart(64, "0"), "hex");
const ZERO = bytesOf(0n);

/** Returns a signature whose byte at this place is 0: a careless encoder makes it shorter than 64 bytes. */
function signatureWithZero(at: number): Buffer {
  for (;;) {
    const signature = signatureOf(INPUT);
    if (signature[at] === 0) return signature;
  }
}
const [SMALL_R, SMALL_S] = [signatureWithZero(0), signatureWithZero(32)];

const PUBLIC_PEM = createPublicKey(KEY).export({ format: "pem", type: "spki" }).toString();
const [X, Y] = [JWK.x, JWK.y].map((part) => Buffer.from(part, "base64url")) as [Buffer, Buffer];
const ED25519_INPUT = inputOf({ ...ED25519_HEADER, alg: "ES256" });

const valid = Object.entries({
  plain: await new SignJWT(CLAIMS).setProtectedHeader(HEADER).sign(KEY),
  "r with a leading zero byte": withSignature(SMALL_R),
  "s with a leading zero byte": withSignature(SMALL_S),
  "the other s of the same signature": withSignature(R, bytesOf(ORDER - BigInt(`0x${S.toString("hex")}`))),
}).map(([name, token]) => ({ name: `ES256, ${name}`, token, expected: TOKEN }));

const invalid = Object.entries({
  "DER instead of r and s": withSignature(DER),
  "DER of 64 bytes at most": withSignature(DER.subarray(0, 64)),
  "r is 0": withSignature(ZERO, S),
  "s is 0": withSignature(R, ZERO),
  "both are 0": withSignature(ZERO, ZERO),
  "r is the order": withSignature(bytesOf(ORDER), S),
  "s is the order": withSignature(R, bytesOf(ORDER)),
  "all bits are set": withSignature(Buffer.alloc(64, 0xff)),
  "r and s exchanged": withSignature(S, R),
  "a byte less": withSignature(SIGNATURE.subarray(0, 63)),
  "a byte more": withSignature(SIGNATURE, Buffer.of(0)),
  "no signature": withSignature(),
  "leading zero of r left out": withSignature(SMALL_R.subarray(1)),
  "signature of another token": withSignature(signatureOf(inputOf(HEADER, { ...CLAIMS, sub: "admin" }))),
  "alg none, no signature": `${inputOf({ ...HEADER, alg: "none" })}.`,
  "alg none, good signature": withHeader({ alg: "none" }),
  "alg es256": withHeader({ alg: "es256" }),
  "alg ES384": withHeader({ alg: "ES384" }),
  "alg ES256K": withHeader({ alg: "ES256K" }),
  "alg EdDSA with the kid of the P-256 key": withHeader({ alg: "EdDSA" }),
  "the kid of the Ed25519 key, signed by the P-256 key": withHeader({ kid: ED25519_HEADER.kid }),
  "the kid of the Ed25519 key, signed by it": `${ED25519_INPUT}.${base64url(sign(null, Buffer.from(ED25519_INPUT), ED25519_KEY))}`,
  "HS256 with the PEM of the public key": hs256(PUBLIC_PEM, HEADER),
  "HS256 with x of the public key": hs256(X, HEADER),
  "HS256 with the point of the public key": hs256(Buffer.concat([Buffer.of(4), X, Y]), HEADER),
}).map(([name, token]) => ({ name: `ES256, ${name}`, token, reason: "SIGNATURE_INVALID" }));

export default { keys: [JWK, ...ed25519.keys], valid, invalid };

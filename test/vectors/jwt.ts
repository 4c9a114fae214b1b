/**
 * JWTs and the expected verdict on each. Valid tokens are created by jose, the others with `node:crypto`, without the code under test. The
 * key is that of RFC 8037 appendix A.1.
 */
import { createHmac, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { type JWTPayload, SignJWT } from "jose";

const KID = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
const JWK = { kty: "OKP", crv: "Ed25519", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" };
export const KEY = createPrivateKey({
  format: "jwk",
  key: { ...JWK, d: "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A" },
});
/** A key that the verifier does not know: its seed is 32 bytes of 7. */
const UNKNOWN_KEY = createPrivateKey({
  key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.alloc(32, 7)]),
  format: "der",
  type: "pkcs8",
});
/** Order of the base point of Ed25519 (RFC 8032 §5.1). */
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;

const ISSUER = "https://keyhold.test";
const ISSUED = 1_790_000_000;
const EXPIRES = ISSUED + 3600;
const NOW = (ISSUED + 60) * 1000;

export const HEADER = { alg: "EdDSA", typ: "JWT", kid: KID };
export const CLAIMS = {
  iss: ISSUER,
  sub: "user_123",
  jti: "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10",
  iat: ISSUED,
  exp: EXPIRES,
  scope: "read write",
  key_id: "0198b2a4-0000-7c52-a1f0-5c9a3b7e2d10",
  secret_version: 3,
};
export const TOKEN = {
  tokenId: CLAIMS.jti,
  keyId: CLAIMS.key_id,
  secretVersion: 3,
  actorId: "user_123",
  issuer: ISSUER,
  issueTime: ISSUED * 1000,
  expireTime: EXPIRES * 1000,
  scopes: ["read", "write"],
  claims: {},
};

export const base64url = (data: string | Uint8Array): string => Buffer.from(data).toString("base64url");
const signed = (header: string | Uint8Array, payload: string | Uint8Array, key = KEY): string => {
  const input = `${base64url(header)}.${base64url(payload)}`;
  return `${input}.${base64url(sign(null, Buffer.from(input), key))}`;
};
const withHeader = (header: object, key = KEY): string => signed(JSON.stringify(header), JSON.stringify(CLAIMS), key);
const withPayload = (payload: string | Uint8Array): string => signed(JSON.stringify(HEADER), payload);
const withClaims = (change: object): string => withPayload(JSON.stringify({ ...CLAIMS, ...change }));
const byJose = (claims: JWTPayload, header: object = {}): Promise<string> =>
  new SignJWT(claims).setProtectedHeader({ ...HEADER, ...header }).sign(KEY);

const GOOD = await byJose(CLAIMS);
const [goodHeader = "", goodPayload = "", goodSignature = ""] = GOOD.split(".");
const goodInput = `${goodHeader}.${goodPayload}`;

/** Adds the order to the scalar: a malleable signature, which a careless verifier accepts. */
function addOrder(signature: string): string {
  const bytes = Buffer.from(signature, "base64url");
  const s = BigInt(`0x${bytes.subarray(32).reverse().toString("hex")}`) + ORDER;
  return base64url(
    Buffer.concat([bytes.subarray(0, 32), Buffer.from(s.toString(16).padStart(64, "0"), "hex").reverse()]),
  );
}

/** Returns the next character of the base64url alphabet; in the last position it sets a bit of no byte. */
function nextCharacter(character: string): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return alphabet.charAt(alphabet.indexOf(character) + 1);
}
const bumpLast = (text: string): string => text.slice(0, -1) + nextCharacter(text.slice(-1));

/** HS256 with the public key as the secret (RFC 8725 §2.1). */
export function hs256(secret: string | Uint8Array, header: object = HEADER): string {
  const input = `${base64url(JSON.stringify({ ...header, alg: "HS256" }))}.${goodPayload}`;
  return `${input}.${createHmac("sha256", secret).update(input).digest("base64url")}`;
}
const publicPem = createPublicKey(KEY).export({ format: "pem", type: "spki" }).toString();

const withUnpaddedHeader = await byJose(CLAIMS, { x: "00" });
if (withUnpaddedHeader.indexOf(".") % 4 === 0) throw new Error("this header has no stray bits to set");

const withDashes = await byJose({ ...CLAIMS, sub: "user_1234" });
if (!/^[^.]+\.[^.]+\.(?=.*-).*_/.test(withDashes)) throw new Error("this signature has no - and _ to replace");

const valid = [
  { name: "plain", token: GOOD, expected: TOKEN },
  { name: "without scopes", token: await byJose({ ...CLAIMS, scope: "" }), expected: { ...TOKEN, scopes: [] } },
  {
    name: "with custom claims",
    token: await byJose({ ...CLAIMS, tenant: "Zürich 🗝", limits: { rpm: 60, tags: [null, true, -1.5] } }),
    expected: { ...TOKEN, claims: { tenant: "Zürich 🗝", limits: { rpm: 60, tags: [null, true, -1.5] } } },
  },
  {
    name: "derived from a token",
    token: await byJose({ ...CLAIMS, parent_id: "0198b2a4-1111-7c52-a1f0-5c9a3b7e2d10" }),
    expected: { ...TOKEN, parentId: "0198b2a4-1111-7c52-a1f0-5c9a3b7e2d10" },
  },
  {
    name: "with an audience",
    token: await byJose({ ...CLAIMS, aud: ["orders", "https://billing.test/"] }),
    expected: { ...TOKEN, audience: ["orders", "https://billing.test/"] },
  },
  {
    name: "with an audience as a text",
    token: await byJose({ ...CLAIMS, aud: "orders" }),
    expected: { ...TOKEN, audience: ["orders"] },
  },
  { name: "version 0", token: withClaims({ secret_version: 0 }), expected: { ...TOKEN, secretVersion: 0 } },
  { name: "1 ms before its end", token: GOOD, now: EXPIRES * 1000 - 1, expected: TOKEN },
  {
    name: "before it was issued, by a node whose clock is ahead",
    token: GOOD,
    now: ISSUED * 1000 - 1,
    expected: TOKEN,
  },
  { name: "irrelevant header parameters", token: withUnpaddedHeader, expected: TOKEN },
  {
    name: "an embedded key is ignored",
    token: await byJose(CLAIMS, {
      jwk: createPublicKey(UNKNOWN_KEY).export({ format: "jwk" }),
      jku: "https://evil.test",
    }),
    expected: TOKEN,
  },
  {
    name: "the last of duplicate claims counts",
    token: withPayload(`{"sub":"admin",${JSON.stringify(CLAIMS).slice(1)}`),
    expected: TOKEN,
  },
];

const malformed = Object.entries({
  empty: "",
  "no token": "kh_v1_abc",
  "two parts": goodInput,
  "four parts": `${GOOD}.`,
  "five parts, as a JWE has": `${GOOD}.${goodSignature}.${goodSignature}`,
  "only dots": "..",
  "white space before": ` ${GOOD}`,
  "new line after": `${GOOD}\n`,
  "padding after the signature": `${GOOD}==`,
  "padding after the header": `${goodHeader}=.${goodPayload}.${goodSignature}`,
  "base64 with + and /": withDashes.replaceAll("-", "+").replaceAll("_", "/"),
  "stray bits in the signature": `${goodInput}.${bumpLast(goodSignature)}`,
  "stray bits in the header": withUnpaddedHeader.replace(/^[^.]+/, bumpLast),
  "a part of one character": `${goodInput}.A`,
  "header is not base64url": `{"alg":"EdDSA"}.${goodPayload}.${goodSignature}`,
  "header is not JSON": signed("EdDSA", JSON.stringify(CLAIMS)),
  "header is an array": signed(JSON.stringify([HEADER]), JSON.stringify(CLAIMS)),
  "header is null": signed("null", JSON.stringify(CLAIMS)),
  "header with a byte order mark": signed(`\ufeff${JSON.stringify(HEADER)}`, JSON.stringify(CLAIMS)),
  "header is not UTF-8": signed(
    Buffer.concat([Buffer.from('{"x":"'), Buffer.of(0xff), Buffer.from(`",${JSON.stringify(HEADER).slice(1)}`)]),
    JSON.stringify(CLAIMS),
  ),
  "no alg": withHeader({ typ: "JWT", kid: KID }),
  "alg is not a string": withHeader({ ...HEADER, alg: ["EdDSA"] }),
  "no kid": withHeader({ alg: "EdDSA", typ: "JWT" }),
  "kid is not a string": withHeader({ ...HEADER, kid: 1 }),
  "no typ": withHeader({ alg: "EdDSA", kid: KID }),
  "typ of another kind": withHeader({ ...HEADER, typ: "at+jwt" }),
  "crit of something unknown": withHeader({ ...HEADER, crit: ["http://example.com/UNDEFINED"] }),
  "crit of exp": withHeader({ ...HEADER, crit: ["exp"], exp: EXPIRES }),
  "crit, empty": withHeader({ ...HEADER, crit: [] }),
  "unencoded payload (RFC 7797)": withHeader({ ...HEADER, b64: false, crit: ["b64"] }),
  "payload is empty": withPayload(""),
  "payload is not JSON": withPayload("hello"),
  "payload is an array": withPayload(JSON.stringify([CLAIMS])),
  "payload is null": withPayload("null"),
  "payload is not UTF-8": withPayload(
    Buffer.concat([Buffer.from('{"x":"'), Buffer.of(0xc3), Buffer.from(`",${JSON.stringify(CLAIMS).slice(1)}`)]),
  ),
  ...Object.fromEntries(Object.keys(CLAIMS).map((name) => [`no ${name}`, withClaims({ [name]: undefined })])),
  ...Object.fromEntries(Object.keys(CLAIMS).map((name) => [`${name} is null`, withClaims({ [name]: null })])),
  "iss is empty": withClaims({ iss: "" }),
  "sub is empty": withClaims({ sub: "" }),
  "sub is a number": withClaims({ sub: 123 }),
  "jti is a number": withClaims({ jti: 1 }),
  "key_id is an array": withClaims({ key_id: [CLAIMS.key_id] }),
  "exp is a string": withClaims({ exp: String(EXPIRES) }),
  "exp is a fraction": withClaims({ exp: EXPIRES + 0.5 }),
  "exp is negative": withClaims({ exp: -1 }),
  "exp is beyond time": withClaims({ exp: 8_640_000_000_001 }),
  "exp is enormous": withPayload(JSON.stringify({ ...CLAIMS, exp: 0 }).replace('"exp":0', '"exp":1e400')),
  "iat is a string": withClaims({ iat: String(ISSUED) }),
  "scope is an array": withClaims({ scope: ["read", "write"] }),
  "scope with two spaces": withClaims({ scope: "read  write" }),
  "scope with a space before": withClaims({ scope: " read" }),
  "scope with a tab": withClaims({ scope: "read\twrite" }),
  "scope that is not ASCII": withClaims({ scope: "lesen:prüfen" }),
  "secret_version is a string": withClaims({ secret_version: "3" }),
  "secret_version is negative": withClaims({ secret_version: -1 }),
  "parent_id is empty": withClaims({ parent_id: "" }),
  "parent_id is null": withClaims({ parent_id: null }),
  "aud is an empty array": withClaims({ aud: [] }),
  "aud is empty": withClaims({ aud: "" }),
  "aud is null": withClaims({ aud: null }),
  "aud is an object": withClaims({ aud: { orders: true } }),
  "aud has a number": withClaims({ aud: ["orders", 1] }),
  "aud has an empty text": withClaims({ aud: ["orders", ""] }),
  "aud has a space": withClaims({ aud: ["orders billing"] }),
  "aud has a line feed": withClaims({ aud: ["orders\n"] }),
  "aud is not ASCII": withClaims({ aud: "örders" }),
  "nbf, which is not supported": withClaims({ nbf: ISSUED }),
}).map(([name, token]) => ({ name, token, reason: "INVALID_FORMAT" }));

const forged = Object.entries({
  "alg none, no signature": `${base64url(JSON.stringify({ ...HEADER, alg: "none" }))}.${goodPayload}.`,
  "alg None, no signature": `${base64url(JSON.stringify({ ...HEADER, alg: "None" }))}.${goodPayload}.`,
  "alg none, good signature": withHeader({ ...HEADER, alg: "none" }),
  "alg eddsa": withHeader({ ...HEADER, alg: "eddsa" }),
  "alg Ed25519, which is not supported (RFC 9864)": withHeader({ ...HEADER, alg: "Ed25519" }),
  "alg of Object.prototype": withHeader({ ...HEADER, alg: "constructor" }),
  "alg twice, the last none": signed(`{"alg":"EdDSA","typ":"JWT","kid":"${KID}","alg":"none"}`, JSON.stringify(CLAIMS)),
  "HS256 with the bytes of the public key": hs256(Buffer.from(JWK.x, "base64url")),
  "HS256 with the text of the public key": hs256(JWK.x),
  "HS256 with the PEM of the public key": hs256(publicPem),
  "signature stripped": `${goodInput}.`,
  "signature cut": `${goodInput}.${base64url(Buffer.from(goodSignature, "base64url").subarray(0, 63))}`,
  "signature with a byte more": `${goodInput}.${base64url(Buffer.concat([Buffer.from(goodSignature, "base64url"), Buffer.of(0)]))}`,
  "signature of zeros": `${goodInput}.${base64url(Buffer.alloc(64))}`,
  "signature with the order added": `${goodInput}.${addOrder(goodSignature)}`,
  "signature of another token": `${goodInput}.${withClaims({ sub: "admin" }).split(".")[2]}`,
  "signed by an unknown key": withHeader(HEADER, UNKNOWN_KEY),
  "payload altered": `${goodHeader}.${base64url(JSON.stringify({ ...CLAIMS, sub: "admin" }))}.${goodSignature}`,
  "payload altered to invalid JSON": `${goodHeader}.${base64url("{")}.${goodSignature}`,
  "payload altered to have expired": `${goodHeader}.${base64url(JSON.stringify({ ...CLAIMS, exp: ISSUED }))}.${goodSignature}`,
  "header altered": `${base64url(JSON.stringify({ ...HEADER, x: 1 }))}.${goodPayload}.${goodSignature}`,
  "another issuer": withClaims({ iss: "https://other.test" }),
  "a confusable issuer": withClaims({ iss: `${ISSUER}/` }),
}).map(([name, token]) => ({ name, token, reason: "SIGNATURE_INVALID" }));

const unknown = Object.entries({
  "unknown kid": withHeader({ ...HEADER, kid: "unknown" }),
  "unknown kid with an embedded key": withHeader(
    { ...HEADER, kid: "stranger", jwk: createPublicKey(UNKNOWN_KEY).export({ format: "jwk" }) },
    UNKNOWN_KEY,
  ),
  "kid of Object.prototype": withHeader({ ...HEADER, kid: "__proto__" }),
  "empty kid": withHeader({ ...HEADER, kid: "" }),
}).map(([name, token]) => ({ name, token, reason: "SIGNATURE_INVALID", unknownKid: true }));

const expired = [
  { name: "expires at this millisecond", token: GOOD, now: EXPIRES * 1000, reason: "EXPIRED" },
  { name: "expired by 1 ms", token: GOOD, now: EXPIRES * 1000 + 1, reason: "EXPIRED" },
  { name: "expired before it was issued", token: withClaims({ exp: ISSUED - 1 }), reason: "EXPIRED" },
];

const vectors = {
  issuer: ISSUER,
  /** Time of a verification in milliseconds, unless a vector has its own. */
  now: NOW,
  keys: [{ ...JWK, kid: KID, use: "sig", alg: "EdDSA" }],
  valid,
  invalid: [...malformed, ...forged, ...unknown, ...expired],
};
export default vectors;

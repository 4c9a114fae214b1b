import { createPublicKey } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ALGORITHMS, type AlgorithmName } from "../../../src/token/jwt/algorithms.ts";
import { looksLikeJwt } from "../../../src/token/jwt/compact.ts";
import { mintJwt } from "../../../src/token/jwt/mint.ts";
import { verifyJwt } from "../../../src/token/jwt/verify.ts";
import vectors from "../../vectors/jwt.ts";
import es256Vectors from "../../vectors/jwt-es256.ts";
import signingKey from "../../vectors/jwt-signing-key.json" with { type: "json" };
import { anyText, ES256_KEY, KEYS, mintInput, NOW, verification } from "./fixtures.ts";

interface Vector {
  readonly name: string;
  readonly token: string;
  readonly now?: number;
}

const publicKeys = new Map(
  es256Vectors.keys.map((jwk) => [
    jwk.kid,
    { algorithm: ALGORITHMS[jwk.alg as AlgorithmName], publicKey: createPublicKey({ key: jwk, format: "jwk" }) },
  ]),
);

function verifyVector({ token, now = vectors.now }: Vector) {
  return verifyJwt(token, { keys: (kid) => publicKeys.get(kid), issuer: vectors.issuer, now });
}

/** The active key of each algorithm. */
const SIGNERS = [mintInput().signingKey, ES256_KEY].map((signingKey) => ({
  alg: signingKey.algorithm.alg,
  signingKey,
}));

describe("vectors", () => {
  test.each([...vectors.valid, ...es256Vectors.valid])("valid: $name", (vector) => {
    expect(verifyVector(vector)).toEqual({ ok: true, token: vector.expected });
  });

  test.each([...vectors.invalid, ...es256Vectors.invalid])("rejects: $name", (vector) => {
    const { reason, unknownKid } = vector as { reason: string; unknownKid?: true };
    const verdict = verifyVector(vector);
    // An expired token is authentic, so its key is known.
    const more = reason === "EXPIRED" && { expired: expect.anything() };
    const message = unknownKid ? "unknown signing key" : expect.any(String);
    expect(verdict).toEqual({ ok: false, reason, message, ...more });
  });
});

test.each([
  ["RFC 8037 appendix A.4", "EdDSA"],
  ["RFC 7515 appendix A.3", "ES256"],
] as const)("the example of %s verifies", (_, alg) => {
  const { jws, publicJwk } = signingKey[alg];
  const [header, payload, signature = ""] = jws.split(".");
  const publicKey = createPublicKey({ key: publicJwk, format: "jwk" });
  const data = Buffer.from(`${header}.${payload}`);
  const verify = (signed: Uint8Array) => ALGORITHMS[alg].verify(signed, publicKey, Buffer.from(signature, "base64url"));
  expect(verify(data)).toBe(true);
  expect(verify(Buffer.concat([data, Buffer.of(0)]))).toBe(false);
});

test.each(SIGNERS)("rejects any change of one character of a JWT with $alg", ({ signingKey }) => {
  const { token } = mintJwt(mintInput({ signingKey, claims: { tenant: "acme" } }));
  const characters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \n\0é"];
  const change = fc.record({ at: fc.nat(token.length - 1), to: fc.constantFrom(...characters) });
  fc.assert(
    fc.property(change, ({ at, to }) => {
      fc.pre(token[at] !== to);
      expect(verifyJwt(token.slice(0, at) + to + token.slice(at + 1), verification).ok).toBe(false);
    }),
    { numRuns: 1000 },
  );
});

test.each(SIGNERS)("rejects every other last character of a signature with $alg", ({ signingKey }) => {
  const { token } = mintJwt(mintInput({ signingKey }));
  const accepted = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"].filter(
    (character) => verifyJwt(token.slice(0, -1) + character, verification).ok,
  );
  expect(accepted).toEqual([token.slice(-1)]);
});

test("rejects any deletion or insertion", () => {
  const { token } = mintJwt(mintInput());
  const splice = fc.tuple(fc.nat(token.length), fc.nat(8), fc.string({ maxLength: 8 }));
  fc.assert(
    fc.property(splice, ([at, cut, put]) => {
      const other = token.slice(0, at) + put + token.slice(at + cut);
      expect(verifyJwt(other, verification).ok).toBe(other === token);
    }),
  );
});

test("never throws on and never accepts arbitrary text", () => {
  const base64url = (data: string | Uint8Array) => Buffer.from(data).toString("base64url");
  const header = fc.record(
    {
      alg: fc.constantFrom("EdDSA", "ES256", "none"),
      typ: fc.constant("JWT"),
      kid: fc.constantFrom(...KEYS.verification.keys()),
    },
    { requiredKeys: [] },
  );
  const jws = fc
    .tuple(
      fc.oneof(
        header.map((value) => JSON.stringify(value)),
        fc.json(),
      ),
      fc.json(),
      fc.uint8Array({ minLength: 64, maxLength: 64 }),
    )
    .map((parts) => parts.map(base64url).join("."));
  fc.assert(
    fc.property(fc.oneof(jws, fc.string(), anyText()), (anything) => {
      expect(verifyJwt(anything, verification).ok).toBe(false);
      expect(typeof looksLikeJwt(anything)).toBe("boolean");
    }),
  );
});

test("the message contains nothing of the token", () => {
  const claims = { tenant: "a-secret-claim" };
  const { token } = mintJwt(mintInput({ claims, issuer: "https://a-secret-issuer.test" }));
  expect(verifyJwt(token, verification)).toEqual({
    ok: false,
    reason: "SIGNATURE_INVALID",
    message: "the token has a different issuer",
  });
});

test("verifies the signature before reading claims", () => {
  const { token } = mintJwt(mintInput({ expireTime: NOW - 1 }));
  const forged = token.slice(0, token.lastIndexOf(".")).concat(".", "A".repeat(86));
  expect(verifyJwt(token, verification)).toMatchObject({ reason: "EXPIRED" });
  expect(verifyJwt(forged, verification)).toMatchObject({ reason: "SIGNATURE_INVALID" });
});

describe("looksLikeJwt", () => {
  const header = Buffer.from('{"alg":"none"}').toString("base64url");

  test.each([`${header}..`, `${header}.e30.`, `${header}.not_json.x`, mintJwt(mintInput()).token])(
    "%s does",
    (text) => {
      expect(looksLikeJwt(text)).toBe(true);
    },
  );

  test.each([
    ["", "empty"],
    [`${header}.e30`, "two parts"],
    [`${header}.e30.x.y`, "four parts"],
    [`${header}.e30.x=`, "padding"],
    [` ${header}.e30.x`, "white space"],
    [`${header}.e30.x\n`, "a new line"],
    ["e30.e30.x", "no alg"],
    [`${Buffer.from('{"alg":1}').toString("base64url")}.e30.x`, "an alg that is not a string"],
    [`${Buffer.from('["alg"]').toString("base64url")}.e30.x`, "an array"],
    ["www.example.com", "a host name"],
    ["1.2.3", "a version"],
  ])("%s does not: %s", (text) => {
    expect(looksLikeJwt(text)).toBe(false);
  });

  test("at 8192 characters it does, at one more it does not, however long it is", () => {
    const ofLength = (length: number) => `${header}..`.padEnd(length, "A");
    expect(looksLikeJwt(ofLength(8192))).toBe(true);
    expect(looksLikeJwt(ofLength(8193))).toBe(false);
    const large = Buffer.from(JSON.stringify({ alg: "none", x: "x".repeat(2 ** 23) })).toString("base64url");
    expect(looksLikeJwt(`${large}..`)).toBe(false);
  });

  test("so does a damaged JWT", () => {
    const notBase64 = vectors.invalid.filter(({ name }) => /^(stray bits|signature|payload|alg|HS256)/.test(name));
    const jwts = notBase64.filter(({ name }) => name !== "alg is not a string");
    expect(jwts.length).toBeGreaterThanOrEqual(20);
    for (const { name, token } of jwts) expect(looksLikeJwt(token), name).toBe(true);
  });
});

import { deepStrictEqual } from "node:assert";
import { createPublicKey } from "node:crypto";
import fc from "fast-check";
import { createVerifier } from "fast-jwt";
import { createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from "jose";
import jsonwebtoken from "jsonwebtoken";
import { describe, expect, test } from "vitest";
import { KeyholdError } from "../../../src/domain/errors.ts";
import type { JsonObject } from "../../../src/lib/json.ts";
import { jwksDocument } from "../../../src/token/jwks.ts";
import { RESERVED_CLAIMS } from "../../../src/token/jwt/claims.ts";
import { decodeJsonObject } from "../../../src/token/jwt/compact.ts";
import { mintJwt } from "../../../src/token/jwt/mint.ts";
import { verifyJwt } from "../../../src/token/jwt/verify.ts";
import { anyText, CONTENT, ES256_KEY, HOUR, ISSUER, KEYS, mintInput, NOW, verification } from "./fixtures.ts";

const WIRE_CLAIMS = {
  iss: ISSUER,
  sub: CONTENT.actorId,
  jti: CONTENT.tokenId,
  iat: NOW / 1000,
  exp: (NOW + HOUR) / 1000,
  scope: "read write",
  key_id: CONTENT.keyId,
  secret_version: 3,
};

/** The public document as other services receive it. */
function published(): JSONWebKeySet {
  return JSON.parse(JSON.stringify(jwksDocument(KEYS.records, NOW)));
}

describe.each([mintInput().signingKey, ES256_KEY])("other libraries, $algorithm.alg", (signingKey) => {
  const { alg } = signingKey.algorithm;
  const { token } = mintJwt(mintInput({ signingKey, claims: { tenant: "acme" }, parentId: "parent" }));
  const wireClaims = { ...WIRE_CLAIMS, tenant: "acme", parent_id: "parent" };

  test("jose verifies by the JWKS", async () => {
    const options = { issuer: ISSUER, algorithms: [alg], typ: "JWT", currentDate: new Date(NOW) };
    const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet(published()), options);
    expect(payload).toEqual(wireClaims);
    expect(protectedHeader).toEqual({ alg, typ: "JWT", kid: signingKey.kid });
  });

  test("jose rejects what we reject", async () => {
    const keys = createLocalJWKSet(published());
    const at = (now: number) => ({ issuer: ISSUER, currentDate: new Date(now) });
    await expect(jwtVerify(token, keys, at(NOW + HOUR))).rejects.toThrow(errors.JWTExpired);
    await expect(jwtVerify(`${token.slice(0, -4)}AAAA`, keys, at(NOW))).rejects.toThrow(errors.JOSEError);
  });

  test("fast-jwt verifies by the JWKS", async () => {
    const verify = createVerifier({
      key: async ({ header }: { header: { kid?: string } }) => {
        const jwk = published().keys.find(({ kid }) => kid === header.kid);
        if (jwk === undefined) throw new Error("unknown kid");
        return createPublicKey({ key: jwk, format: "jwk" }).export({ format: "pem", type: "spki" });
      },
      algorithms: [alg],
      allowedIss: ISSUER,
      clockTimestamp: NOW,
    });
    expect(await verify(token)).toEqual(wireClaims);
  });

  test(`jsonwebtoken ${alg === "EdDSA" ? "does not know EdDSA" : "verifies by the JWKS"}`, () => {
    const jwk = published().keys.find(({ kid }) => kid === signingKey.kid);
    if (jwk === undefined) throw new Error("unknown kid");
    const publicKey = createPublicKey({ key: jwk, format: "jwk" });
    const decode = () =>
      jsonwebtoken.verify(token, publicKey, {
        algorithms: [alg as jsonwebtoken.Algorithm],
        issuer: ISSUER,
        clockTimestamp: NOW / 1000,
      });
    if (alg === "EdDSA") expect(decode).toThrow(/"alg" parameter for "ed25519" key type|Unknown key type "ed25519"/);
    else expect(decode()).toEqual(wireClaims);
  });
});

test("rounds the expiry down to the second, and returns it", () => {
  const minted = mintJwt(mintInput({ issueTime: NOW + 999, expireTime: NOW + HOUR + 999 }));
  expect(minted.expireTime).toBe(NOW + HOUR);
  expect(verifyJwt(minted.token, verification)).toMatchObject({
    token: { issueTime: NOW, expireTime: NOW + HOUR },
  });
});

test("no scopes is an empty scope claim, not a missing one", () => {
  const { token } = mintJwt(mintInput({ scopes: [] }));
  expect(verifyJwt(token, verification)).toMatchObject({ token: { scopes: [] } });
  expect(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).toContain('"scope":""');
});

test("an audience of one service is an array too", () => {
  const { token } = mintJwt(mintInput({ audience: ["orders"] }));
  expect(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).toContain('"aud":["orders"]');
});

describe("reserved claims", () => {
  test("are the documented ones", () => {
    const contract = "iss sub aud exp nbf iat jti scope key_id parent_id".split(" ");
    expect([...RESERVED_CLAIMS].toSorted()).toEqual([...contract, "secret_version"].toSorted());
  });

  test.each([...RESERVED_CLAIMS])("rejects %s by name", (name) => {
    const mint = () => mintJwt(mintInput({ claims: { [name]: "x" } }));
    expect(mint).toThrow(KeyholdError);
    expect(mint).toThrow(
      expect.objectContaining({ violations: [expect.objectContaining({ field: `custom_claims.${name}` })] }),
    );
  });
});

test.each([
  ["a scope with a space", { scopes: ["read write"] }],
  ["an empty scope", { scopes: ["read", ""] }],
  ["only an empty scope", { scopes: [""] }],
  ["a scope with a line feed", { scopes: ["read\n"] }],
  ["no subject", { actorId: "" }],
  ["no time", { expireTime: Number.NaN }],
  ["an infinite lifetime", { expireTime: Number.POSITIVE_INFINITY }],
  ["an invalid version", { secretVersion: 1.5 }],
  ["an empty parent", { parentId: "" }],
  ["an audience of nobody", { audience: [] }],
  ["an audience with a space", { audience: ["a b"] }],
])("claims that would not verify are not minted: %s", (_, change) => {
  expect(() => mintJwt(mintInput(change))).toThrow(RangeError);
});

test("verify(mint(x)) = x", () => {
  const text = anyText({ minLength: 1, maxLength: 50 });
  const scope = fc.stringMatching(/^[\x21-\x7e]{1,30}$/);
  const seconds = fc.integer({ min: 0, max: 8_640_000_000_000 });
  const claims = fc
    .dictionary(fc.oneof(fc.string(), fc.constantFrom("__proto__", "constructor", "toJSON", "ISS", "")), fc.jsonValue())
    .filter((set) => Object.keys(set).every((name) => !RESERVED_CLAIMS.has(name)))
    .map((set) => jsonOf(set as JsonObject));
  const content = fc.record({
    actorId: text,
    tokenId: text,
    keyId: text,
    secretVersion: fc.maxSafeNat(),
    issueTime: seconds.map((s) => s * 1000),
    expireTime: fc.integer({ min: NOW / 1000 + 1, max: 8_640_000_000_000 }).map((s) => s * 1000),
    scopes: fc.array(scope, { maxLength: 10 }),
    parentId: fc.option(text, { nil: undefined }),
    audience: fc.option(fc.array(scope, { minLength: 1, maxLength: 5 }), { nil: undefined }),
    claims,
  });
  fc.assert(
    fc.property(content, ({ parentId, audience, ...rest }) => {
      const { token, expireTime } = mintJwt(mintInput({ parentId, audience, ...rest }));
      const parent = { ...(parentId !== undefined && { parentId }), ...(audience !== undefined && { audience }) };
      expect(expireTime).toBe(rest.expireTime);
      // Not vitest's equality, which takes a claim named "constructor" for the class of the object.
      deepStrictEqual(verifyJwt(token, verification), {
        ok: true,
        token: { issuer: ISSUER, ...rest, ...parent },
      });
    }),
    { numRuns: 200 },
  );
});

/** A value after a JSON round trip, which has no -0. */
function jsonOf(value: JsonObject): JsonObject {
  return decodeJsonObject(Buffer.from(JSON.stringify(value))) ?? {};
}

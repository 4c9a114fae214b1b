import { describe, expect, test } from "vitest";
import { deriveKeyRing } from "../../src/domain/server-keys.ts";
import type { Valid } from "../../src/domain/verdict.ts";
import { type Derivation, deriveToken, parseDerivation } from "../../src/keys/derive.ts";
import type { DeriveContext, TokenLimits } from "../../src/keys/ports.ts";
import type { JsonObject } from "../../src/lib/json.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { loadSigningKeys } from "../../src/token/jwt/signing-keys.ts";
import { verifyJwt } from "../../src/token/jwt/verify.ts";
import { activeKey, HOUR, ISSUER, NOW, RING, record } from "../token/jwt/fixtures.ts";

const KEYS = loadSigningKeys([record()], RING, NOW);
const SIGNING_KEY = activeKey(KEYS);

const PARENT: Valid = {
  valid: true,
  keyId: "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10",
  credentialType: "ISSUED_API_KEY",
  key: {
    keyId: "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10",
    kind: "issued",
    actorId: "actor",
    scopes: ["a", "b"],
    metadata: {},
    expireTime: null,
    revokeTime: null,
    disableTime: null,
    allowedCidrs: null,
    restrictedToActorIds: null,
    rateLimits: null,
    quotas: null,
  },
  keyLimits: null,
  secretVersion: 2,
  scopes: ["a", "b"],
  expireTime: null,
  token: null,
};

const JWT: Derivation = { algorithm: "JWT", ttl: undefined, scopes: [], audience: [], claims: {} };

const LIMITS: TokenLimits = { maxTtl: 24 * HOUR, allowedClaims: new Set(["email"]) };

function context(signer: DeriveContext["signer"], limits = LIMITS): DeriveContext {
  const macaroonRoot = deriveKeyRing({ current: Buffer.alloc(32, 1), retired: [] }, "macaroon-root");
  return {
    clock: { now: () => NOW },
    random: systemRandom,
    issuer: ISSUER,
    limits,
    macaroonRoot,
    signer,
    cacheToken: () => () => {},
  };
}

function derive(context: DeriveContext, parent: Valid, derivation: Derivation) {
  return deriveToken(context, "", parent, parseDerivation(derivation, context.limits));
}

function read(token: string) {
  return verifyJwt(token, { keys: (kid) => KEYS.verification.get(kid), issuer: ISSUER, now: NOW });
}

test("with a cached signing key a token is created synchronously, and lives an hour", () => {
  const derived = derive(
    context(() => SIGNING_KEY),
    PARENT,
    JWT,
  );
  if (derived instanceof Promise) throw new Error("a promise");
  const { token, tokenId, expireTime } = derived;
  expect(expireTime).toEqual(new Date(NOW + HOUR));
  expect(read(token)).toMatchObject({ ok: true, token: { tokenId, secretVersion: 2, scopes: ["a", "b"] } });
});

test("a macaroon needs no signing key", () => {
  const none = () => {
    throw new Error("not asked for");
  };
  expect(derive(context(none), PARENT, { ...JWT, algorithm: "MACAROON" })).not.toBeInstanceOf(Promise);
});

test("a pending signing key is awaited, and receives the lifetime of the token", async () => {
  const { promise, resolve } = Promise.withResolvers<typeof SIGNING_KEY>();
  const lifetimes: number[] = [];
  const signer = (expireTime: number) => {
    lifetimes.push(expireTime);
    return promise;
  };
  const derived = derive(context(signer), PARENT, { ...JWT, ttl: "2h" });
  expect(lifetimes).toEqual([NOW + 2 * HOUR]);
  resolve(SIGNING_KEY);
  expect(read((await derived).token)).toMatchObject({ ok: true });
});

test("a parent that expires before its token would start is refused as expired", () => {
  const parent = { ...PARENT, expireTime: new Date(NOW + 1) };
  const refused = expect.objectContaining({ code: "CREDENTIAL_INVALID" });
  expect(() =>
    derive(
      context(() => SIGNING_KEY),
      parent,
      JWT,
    ),
  ).toThrow(refused);
});

describe("the audience of a token", () => {
  const audienceOf = (parent: readonly string[] | undefined | null, audience: readonly string[]) => {
    const token = parent === null ? null : { tokenId: "parent", claims: {}, audience: parent };
    const derived = derive(
      context(() => SIGNING_KEY),
      { ...PARENT, token },
      { ...JWT, audience },
    );
    if (derived instanceof Promise) throw new Error("a promise");
    const verdict = read(derived.token);
    if (!verdict.ok) throw new Error(verdict.message);
    expect(derived.audience).toEqual(verdict.token.audience ?? []);
    return verdict.token.audience;
  };

  test.each([
    ["is any without a request", null, [], undefined],
    ["is the requested one", null, ["a", "b"], ["a", "b"]],
    ["names each service once", null, ["b", "a", "b"], ["b", "a"]],
    ["is any from a token for any", undefined, [], undefined],
    ["is the requested one from a token for any", undefined, ["a"], ["a"]],
    ["is by default that of the token", ["a", "b"], [], ["a", "b"]],
    ["is narrower on request", ["a", "b"], ["b"], ["b"]],
  ] as const)("%s", (_, parent, wanted, expected) => {
    expect(audienceOf(parent, wanted)).toEqual(expected);
  });

  test("is never wider than that of the token", () => {
    const refused = expect.objectContaining({ code: "AUDIENCE_NOT_ALLOWED", metadata: { audience: "c" } });
    expect(() => audienceOf(["a", "b"], ["a", "c"])).toThrow(refused);
  });
});

test.each(["JWT", "MACAROON"] as const)("a %s is as long as a credential may be, and no longer", async (algorithm) => {
  const lengthOf = async (size: number) => {
    const signer = () => SIGNING_KEY;
    const parent = { ...PARENT, scopes: ["x".repeat(size)] };
    return (await derive(context(signer), parent, { ...JWT, algorithm })).token.length;
  };
  const lengths: number[] = [];
  const refusal = await (async () => {
    for (let size = 5_000; size < 8_192; size++) lengths.push(await lengthOf(size));
  })().catch((error: unknown) => error);
  expect(refusal).toMatchObject({ code: "INVALID_ARGUMENT", violations: [{ field: "scopes", reason: "TOO_LARGE" }] });
  expect(lengths.at(-1)).toBe(8192);
});

describe.each(["JWT", "MACAROON"] as const)("registered claims in a %s", (algorithm) => {
  const deriveWith = (claims: JsonObject, inherited: JsonObject = {}) => {
    const parent = { ...PARENT, token: { tokenId: "parent", claims: inherited, audience: undefined } };
    const signer = () => SIGNING_KEY;
    return derive(context(signer), parent, { ...JWT, algorithm, claims });
  };

  test("are reported once if Keyhold itself sets them", () => {
    const violations = [expect.objectContaining({ field: "custom_claims.iss", description: "is a reserved claim" })];
    expect(() => deriveWith({ iss: "me" })).toThrow(expect.objectContaining({ violations }));
  });

  test("of a token by an earlier release are inherited", async () => {
    expect((await deriveWith({ tenant: "t" }, { groups: ["a"] })).claims).toEqual({ groups: ["a"], tenant: "t" });
  });
});

import { expect, test } from "vitest";
import { deriveKeyRing } from "../../src/domain/server-keys.ts";
import type { Valid } from "../../src/domain/verdict.ts";
import { type Derivation, type DeriveContext, deriveToken } from "../../src/keys/derive.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { loadSigningKeys } from "../../src/token/jwt/signing-keys.ts";
import { verifyJwt } from "../../src/token/jwt/verify.ts";
import { operator } from "../support/principal.ts";
import { activeKey, HOUR, ISSUER, NOW, RING, record } from "../token/jwt/fixtures.ts";

const KEYS = loadSigningKeys([record()], RING, NOW);
const SIGNING_KEY = activeKey(KEYS);

const PARENT: Valid = {
  valid: true,
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
  },
  secretVersion: 2,
  scopes: ["a", "b"],
  expireTime: null,
  token: null,
};

const JWT: Derivation = { algorithm: "JWT", ttl: undefined, scopes: [], claims: {} };

function context(signer: DeriveContext["signer"]): DeriveContext {
  const macaroonRoot = deriveKeyRing({ current: Buffer.alloc(32, 1), retired: [] }, "macaroon-root");
  return { clock: { now: () => NOW }, random: systemRandom, issuer: ISSUER, macaroonRoot, signer };
}

function read(token: string) {
  return verifyJwt(token, { keys: (kid) => KEYS.verification.get(kid), issuer: ISSUER, now: NOW });
}

test("with a cached signing key a token is created synchronously, and lives an hour", () => {
  const derived = deriveToken(
    context(() => SIGNING_KEY),
    operator,
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
  expect(deriveToken(context(none), operator, PARENT, { ...JWT, algorithm: "MACAROON" })).not.toBeInstanceOf(Promise);
});

test("a pending signing key is awaited, and receives the lifetime of the token", async () => {
  const { promise, resolve } = Promise.withResolvers<typeof SIGNING_KEY>();
  const lifetimes: number[] = [];
  const signer = (expireTime: number) => {
    lifetimes.push(expireTime);
    return promise;
  };
  const derived = deriveToken(context(signer), operator, PARENT, { ...JWT, ttl: "2h" });
  expect(lifetimes).toEqual([NOW + 2 * HOUR]);
  resolve(SIGNING_KEY);
  expect(read((await derived).token)).toMatchObject({ ok: true });
});

test("a parent that expires before its token would start is refused as expired", () => {
  const parent = { ...PARENT, expireTime: new Date(NOW + 1) };
  const refused = expect.objectContaining({ code: "CREDENTIAL_INVALID" });
  expect(() =>
    deriveToken(
      context(() => SIGNING_KEY),
      operator,
      parent,
      JWT,
    ),
  ).toThrow(refused);
});

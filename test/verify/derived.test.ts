import { describe, expect, test, vi } from "vitest";
import type { Valid, Verdict } from "../../src/domain/verdict.ts";
import { type Derivation, deriveToken, parseDerivation } from "../../src/keys/derive.ts";
import type { DeriveContext } from "../../src/keys/ports.ts";
import { systemRandom } from "../../src/lib/random.ts";
import type { Credential } from "../../src/verify/identified.ts";
import { identify, tokenCacher } from "../../src/verify/identify.ts";
import { verify } from "../../src/verify/verify.ts";
import { withCaveats } from "../support/macaroon-caveats.ts";
import { HOUR, NOW, newFixture } from "./fixture.ts";

type Fixture = ReturnType<typeof newFixture>;

const DERIVATION = { ttl: undefined, scopes: [], audience: [], claims: {} };

async function derive(
  fixture: Fixture,
  credential: string,
  derivation: Partial<Derivation> & Pick<Derivation, "algorithm">,
  signer: DeriveContext["signer"] = () => fixture.signingKey,
): Promise<string> {
  const { context, rings } = fixture;
  const limits = { maxTtl: 24 * HOUR, allowedClaims: new Set<string>() };
  const cacheToken = (credential: string, parent: Valid) => tokenCacher(context, credential, parent);
  const { clock, issuer } = context;
  const random = systemRandom;
  const deriving = { clock, random, issuer, limits, macaroonRoot: rings.macaroonRoot, signer, cacheToken };
  const parent = await verify(context, credential, "default", { requiredScopes: [], audience: null });
  const { token } = await deriveToken(
    deriving,
    credential,
    parent,
    parseDerivation({ ...DERIVATION, ...derivation }, limits),
  );
  return token;
}

function cachedOf({ context: { credentials } }: Fixture, token: string) {
  return credentials?.find(credentials.nameOf(token));
}

/** Returns what an identification of the token caches. */
async function identifiedOf({ context }: Fixture, token: string): Promise<Credential> {
  const identified = await identify(context, token);
  if ("valid" in identified || identified.token === null) expect.unreachable();
  const { tokenId, secretVersion, scopes, claims, audience, expireTime } = identified.token;
  const { credentialType } = identified;
  return { credentialType, token: { tokenId, secretVersion, scopes, claims, audience, expireTime } };
}

const outcome = (verdict: Verdict) => (verdict.valid ? "VALID" : verdict.reason);

const CLAIMS = { n: -0, ten: 1e1, text: 'é🔑"\u2028', 2: [null, { deep: [1.5, true] }], ["__proto__"]: { a: 1 } };

describe.each(["JWT", "MACAROON"] as const)("a derived %s", (algorithm) => {
  test.each([
    ["by default", {}],
    ["for a time that no second ends", { ttl: "90.123s" }],
    ["without scopes that were asked for twice", { scopes: ["write", "write"] }],
    ["with an audience", { audience: ["orders", "billing"] }],
    ["with claims", { claims: CLAIMS }],
  ])("is cached as verification identifies it: %s", async (_, derivation) => {
    const fixture = newFixture();
    fixture.at(NOW + 7);
    const { keyId, credential } = fixture.issue({ expireTime: new Date(NOW + 2 * HOUR + 1) });
    const set = vi.spyOn(fixture.context.credentials ?? expect.unreachable(), "set");
    const deriveCached = async (parent: string, derivation: Partial<Derivation>) => {
      const token = await derive(fixture, parent, { algorithm, ...derivation });
      // Not from the cache, which might store another form.
      expect(set.mock.lastCall?.[1].identified).toStrictEqual(await identifiedOf(fixture, token));
      expect(cachedOf(fixture, token)).toBeDefined();
      return token;
    };
    const token = await deriveCached(credential, derivation);
    await deriveCached(token, {});
    await deriveCached(withCaveats(fixture.macaroon(keyId, NOW + HOUR + 3), ["scope = read"]), {});
  });

  test("is identified from the cache at its first verification", async () => {
    const fixture = newFixture();
    const token = await derive(fixture, fixture.issue().credential, { algorithm });
    const publicKey = () => expect.unreachable();
    const context = { ...fixture.context, publicKey, rings: { ...fixture.rings, macaroonRoot: { find: publicKey } } };
    expect(verify(context as unknown as Fixture["context"], token)).toMatchObject({ valid: true });
  });

  test("is rejected at its first verification after its key, secret or time has ended", async () => {
    const fixture = newFixture();
    const [revoked, rotated, expired] = [fixture.issue(), fixture.issue(), fixture.issue()];
    const tokens = [revoked, rotated, expired].map(({ credential }) => derive(fixture, credential, { algorithm }));
    const [ofRevoked = "", ofRotated = "", ofExpired = ""] = await Promise.all(tokens);
    const record = fixture.store.records.get(revoked.keyId) ?? expect.unreachable();
    fixture.store.put({ ...record, key: { ...record.key, revokeTime: new Date(NOW) } });
    fixture.rotate(rotated.keyId, null);
    for (const { keyId } of [revoked, rotated]) fixture.changed(keyId);
    expect(outcome(await verify(fixture.context, ofRevoked))).toBe("KEY_REVOKED");
    expect(outcome(await verify(fixture.context, ofRotated))).toBe("SECRET_ROTATED");
    fixture.at(NOW + HOUR);
    expect(outcome(await verify(fixture.context, ofExpired))).toBe("EXPIRED");
  });

  test("is not cached without a cache", async () => {
    const fixture = newFixture({ cached: false });
    const token = await derive(fixture, fixture.issue().credential, { algorithm });
    expect(cachedOf(fixture, token)).toBeUndefined();
    expect(outcome(await verify(fixture.context, token))).toBe("VALID");
  });
});

test("a derived JWT is rejected at its first verification after its signing key was revoked", async () => {
  const fixture = newFixture();
  const token = await derive(fixture, fixture.issue().credential, { algorithm: "JWT" });
  fixture.revokeSigningKey();
  fixture.setCoherent(false);
  expect(outcome(await verify(fixture.context, token))).toBe("SIGNATURE_INVALID");
});

test("a JWT is not cached if all credentials were evicted, as for a lost signing key, before it was signed", async () => {
  const fixture = newFixture();
  const signing = Promise.withResolvers<Fixture["signingKey"]>();
  const token = derive(fixture, fixture.issue().credential, { algorithm: "JWT" }, () => {
    fixture.cache.clear();
    return signing.promise;
  });
  signing.resolve(fixture.signingKey);
  expect(cachedOf(fixture, await token)).toBeUndefined();
});

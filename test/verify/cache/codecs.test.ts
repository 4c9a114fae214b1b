import fc from "fast-check";
import { expect, test } from "vitest";
import { CredentialCache } from "../../../src/verify/cache/credential-cache.ts";
import { Epochs } from "../../../src/verify/cache/epochs.ts";
import { KeyCache } from "../../../src/verify/cache/key-cache.ts";
import type { Loaded } from "../../../src/verify/identified.ts";
import { anyQuota, anyQuotas, anyRateLimit, anyRateLimits } from "../../support/rate-limits.ts";

const KEY_ID = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

const time = fc.option(fc.integer({ min: 0, max: 2 ** 42 }).map((ms) => new Date(ms)));
const text = fc.string({ unit: "binary", maxLength: 8 });
const texts = fc.array(text, { maxLength: 4 });
const digest = fc.record({
  keyId: fc.constant("0123456789abcdef"),
  digest: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes)),
});
const key = fc.record({
  keyId: fc.constant(KEY_ID),
  kind: fc.constantFrom("issued" as const, "imported" as const),
  actorId: text,
  scopes: texts,
  metadata: fc.dictionary(text, text, { noNullPrototype: true }),
  expireTime: time,
  revokeTime: time,
  disableTime: time,
  allowedCidrs: fc.option(texts),
  restrictedToActorIds: fc.option(texts),
  rateLimits: anyRateLimits,
  quotas: anyQuotas,
});
const anyActorLimits = fc.option(
  fc.record({ actorId: text, limits: fc.array(fc.oneof(anyRateLimit, anyQuota), { minLength: 1, maxLength: 8 }) }),
  { nil: undefined },
);
const version = fc.nat(2 ** 30);
const secret = fc.record({ version, digest, expireTime: time });
const token = fc.record({
  ...{ tokenId: text, secretVersion: version, scopes: texts, audience: fc.option(texts, { nil: undefined }) },
  ...{ claims: fc.dictionary(text, fc.jsonValue() as fc.Arbitrary<null>), expireTime: fc.nat() },
});
const adoption = fc.record({
  ...{ keyId: fc.constant(KEY_ID), hashDigest: digest, digest },
  otherDigests: fc.array(digest, { maxLength: 2 }),
});

const options = { maxBytes: 2 ** 20, maxEntries: 100, seed: 1 };

test("a credential with its key is found as it was cached, but for the digests of its secrets", () => {
  const epochs = new Epochs();
  const cache = new CredentialCache(epochs, { isCoherent: () => true, renewed: async () => {} }, options);
  const types = fc.constantFrom("ISSUED_API_KEY" as const, "IMPORTED_API_KEY" as const);
  const tokenTypes = fc.constantFrom("JWT" as const, "MACAROON" as const);
  const credential = fc.oneof(
    fc.record({ credentialType: types, token: fc.constant(null) }),
    fc.record({ credentialType: tokenTypes, token }),
  );
  fc.assert(
    fc.property(
      credential,
      key,
      fc.option(secret, { nil: undefined }),
      fc.option(adoption),
      anyActorLimits,
      (identified, key, secret, adoption, actorLimits) => {
        const stamp = epochs.stampOf(key, KEY_ID);
        const { version = 0, expireTime = null } = secret ?? {};
        const ofToken = identified.token && { ...identified.token, secretVersion: version };
        const loaded: Loaded = {
          identified: { credentialType: identified.credentialType, token: ofToken } as Loaded["identified"],
          stored: { key, secrets: [], stamp, actorLimits },
          secret: secret && { version, expireTime },
          adoption,
        };
        cache.set("name", loaded, cache.generation);
        // As JSON has it, which has no -0.
        const expected = { ...loaded, identified: JSON.parse(JSON.stringify(loaded.identified)) };
        expect(cache.find("name")?.loaded).toEqual(expected);
        expect(cache.find("name")?.actorLimits).toEqual(actorLimits);
        epochs.invalidate({ keyIds: [], digests: [], actorIds: [key.actorId] });
        expect(cache.find("name")).toBeUndefined();
      },
    ),
    { numRuns: 1_000 },
  );
});

test("a key is found as it was cached", () => {
  const epochs = new Epochs();
  const cache = new KeyCache(epochs, options);
  const hash = fc.record({ schemeId: fc.nat(99), parameters: fc.option(text) });
  const secrets = fc.array(fc.oneof(secret, fc.record({ version, digest, expireTime: time, hash })), { maxLength: 4 });
  fc.assert(
    fc.property(key, secrets, anyActorLimits, (key, secrets, actorLimits) => {
      const stored = { key, secrets, stamp: epochs.stampOf(key, KEY_ID), ...(actorLimits && { actorLimits }) };
      cache.set({ keyId: KEY_ID, digests: [], isParent: true }, stored);
      expect(cache.get({ keyId: KEY_ID, digests: [] })).toEqual(stored);
      epochs.invalidate({ keyIds: [], digests: [], actorIds: [key.actorId] });
      expect(cache.get({ keyId: KEY_ID, digests: [] })).toBeUndefined();
    }),
    { numRuns: 500 },
  );
});

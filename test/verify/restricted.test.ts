import { describe, expect, test } from "vitest";
import type { VerifiableKey } from "../../src/domain/key.ts";
import { NOT_FOUND } from "../../src/verify/evaluate.ts";
import type { CacheMode } from "../../src/verify/reader.ts";
import { restrictedTo } from "../../src/verify/restricted.ts";
import { verify, verifyAll } from "../../src/verify/verify.ts";
import { table } from "../support/conformance.ts";
import { fieldsOf, HOUR, NOW, newFixture, requestsOf } from "./fixture.ts";

type Fixture = ReturnType<typeof newFixture>;

const PAST = new Date(NOW - HOUR);

/** States of a foreign key, and a presentation that fails its checks. */
const STATES: readonly [string, Partial<VerifiableKey>][] = [
  ["in force", {}],
  ["revoked", { revokeTime: PAST }],
  ["expired", { expireTime: PAST }],
  ["disabled", { disableTime: PAST }],
  ["restricted to addresses", { allowedCidrs: ["192.0.2.0/24"] }],
  ["of an own actor, and restricted to others", { actorId: "own", restrictedToActorIds: ["own", "actor_1"] }],
];

const CREDENTIALS: readonly [string, (fixture: Fixture, change: Partial<VerifiableKey>) => string][] = [
  ["secret", (fixture, change) => fixture.issue(change).credential],
  ["raw key", (fixture, change) => fixture.importRaw("a-raw-key-of-another-service", change).credential],
  ["JWT", (fixture, change) => fixture.jwt(fixture.issue(change).keyId, NOW + HOUR)],
  ["macaroon", (fixture, change) => fixture.macaroon(fixture.issue(change).keyId, NOW + HOUR)],
  ["expired JWT", (fixture, change) => fixture.jwt(fixture.issue(change).keyId, NOW - 1000)],
  ["expired macaroon", (fixture, change) => fixture.macaroon(fixture.issue(change).keyId, NOW - 1000)],
];

const CASES = CREDENTIALS.flatMap(([credential, create]) =>
  STATES.map(([state, change]) => ({ credential, create, state, change })),
);

const presentation = { requiredScopes: ["absent"], audience: "elsewhere", clientIp: "198.51.100.1" };

/** Verifies a credential, alone or in a batch, for a caller that is restricted to the actor "own", and counts what takes time. */
function asOwn(fixture: Fixture, inBatch = false) {
  let signatures = 0;
  const publicKey = (kid: string) => {
    signatures++;
    return fixture.context.publicKey(kid);
  };
  const context = restrictedTo({ ...fixture.context, publicKey }, { actorIds: ["own"] });
  return async (credential: string, mode: CacheMode = "default") => {
    const reads = fixture.store.statements.length;
    signatures = 0;
    const [verdict] = inBatch
      ? await verifyAll(context, [{ credential, ...presentation }], mode)
      : [await verify(context, credential, mode, presentation)];
    return { verdict, signatures, reads: fixture.store.statements.length - reads };
  };
}

describe.each(table(CASES))("a foreign $credential whose key is $state", ({ create, change }) => {
  test.each([
    ["alone", false],
    ["in a batch", true],
  ])(
    "has, %s, the verdict of one that does not exist, and takes its work, also when it is cached",
    async (_, inBatch) => {
      const fixture = newFixture();
      const credential = create(fixture, change);
      const verifyAsOwn = asOwn(fixture, inBatch);
      const seen = [];
      for (const exists of [true, false]) {
        if (!exists) {
          fixture.store.records.clear();
          fixture.cache.clear();
        }
        for (let again = 0; again < 3; again++) {
          seen.push(await verifyAsOwn(credential));
          // Another caller, for whom it is cached.
          await verify(fixture.context, credential);
        }
      }
      const signatures = credential.startsWith("ey") ? 1 : 0;
      expect(seen).toEqual(seen.map(() => ({ verdict: NOT_FOUND, signatures, reads: 1 })));
    },
  );

  test("is not used", async () => {
    const fixture = newFixture();
    await asOwn(fixture)(create(fixture, change));
    expect(fixture.used).toEqual([]);
  });
});

describe("a credential of an own key", () => {
  test.each(table(CREDENTIALS))("is verified as for every caller, from the cache: %s", async (title, create) => {
    const fixture = newFixture();
    const credential = create(fixture, { actorId: "own" });
    const context = restrictedTo(fixture.context, { actorIds: ["other", "own"] });
    const first = await verify(context, credential);
    expect(first).toMatchObject(title.startsWith("expired") ? { reason: "EXPIRED" } : { valid: true });
    expect(fieldsOf(await verify(fixture.context, credential))).toEqual(first);
    const { length } = fixture.store.statements;
    const next = verify(context, credential);
    if (next instanceof Promise) expect.unreachable();
    expect(fieldsOf(next)).toEqual(first);
    expect(fixture.store.statements.length).toBe(length);
  });

  test("has stale verdicts, and a foreign one is as unavailable as one that does not exist", async () => {
    const fixture = newFixture();
    const [mine, foreign] = [fixture.issue({ actorId: "own" }), fixture.issue()].map(({ credential }) => credential);
    for (const credential of [mine, foreign]) await verify(fixture.context, credential ?? "");
    fixture.setCoherent(false);
    fixture.renewable(false);
    fixture.staleGrace(true);
    const context = restrictedTo(fixture.context, { actorIds: ["own"] });
    expect(await verify(context, mine ?? "")).toMatchObject({ valid: true, isStale: true });
    expect(await verify(fixture.context, foreign ?? "")).toMatchObject({ valid: true, isStale: true });
    await expect(verify(context, foreign ?? "")).rejects.toThrow("no lease");
    await expect(verify(context, newFixture({ roots: fixture.roots }).issue().credential)).rejects.toThrow("no lease");
  });
});

test("in a batch, foreign credentials do not exist", async () => {
  const fixture = newFixture();
  const credentials = [fixture.issue({ actorId: "own" }), fixture.issue(), fixture.importRaw("raw")];
  const requests = requestsOf(credentials.map(({ credential }) => credential));
  const verdicts = await verifyAll(restrictedTo(fixture.context, { actorIds: ["own"] }), requests);
  expect(verdicts).toMatchObject([{ valid: true }, NOT_FOUND, NOT_FOUND]);
});

test("a caller that is restricted to no actor knows no key, and one that is not restricted every key", async () => {
  const fixture = newFixture();
  const { credential } = fixture.issue();
  expect(await verify(restrictedTo(fixture.context, { actorIds: [] }), credential)).toEqual(NOT_FOUND);
  expect(restrictedTo(fixture.context, { actorIds: null })).toBe(fixture.context);
});

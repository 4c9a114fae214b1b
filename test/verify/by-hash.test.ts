import { describe, expect, test } from "vitest";
import type { Verdict } from "../../src/domain/verdict.ts";
import { reportingDuplicates } from "../../src/verify/cache/duplicates.ts";
import { explain } from "../../src/verify/explain.ts";
import { restrictedTo } from "../../src/verify/restricted.ts";
import { verify, verifyAll } from "../../src/verify/verify.ts";
import { operator } from "../support/principal.ts";
import { FAST, FAST_WITH_PREFIX } from "../support/test-hashes.ts";
import { HOUR, NOW, newFixture, newRoots, requestsOf } from "./fixture.ts";
import { nextTurn } from "./store.ts";

type Fixture = ReturnType<typeof newFixture>;

const RAW_KEY = "sk_live_a raw key of another service";
/** It has the prefix of the other one. */
const WRONG = "sk_live_a raw key that was never imported";
const NOTHING = { requiredScopes: [] };

const KINDS = {
  fast: (fixture: Fixture, rawKey: string, change = {}) => fixture.importFast(rawKey, change),
  slow: (fixture: Fixture, rawKey: string, change = {}) => fixture.importSlow(rawKey, change),
} as const;

function outcome(verdict: Verdict): string {
  return verdict.valid ? `VALID ${verdict.key.keyId}` : verdict.reason;
}

async function outcomeOf(fixture: Fixture, credential: string): Promise<string> {
  return outcome(await verify(fixture.context, credential));
}

describe.each(["fast", "slow"] as const)("a key with a %s hash", (kind) => {
  const importAs = KINDS[kind];

  test.each([true, false])("is verified before and after its adoption, with a cache: %s", async (cached) => {
    const fixture = newFixture({ byHash: true, cached });
    const keyId = importAs(fixture, RAW_KEY);
    const verdict = await verify(fixture.context, RAW_KEY, "default", NOTHING, operator);
    expect(verdict).toMatchObject({
      valid: true,
      credentialType: "IMPORTED_API_KEY",
      secretVersion: 1,
      key: { keyId },
    });
    expect(await verify(fixture.context, RAW_KEY)).toEqual(verdict);
    const [{ adoption, caller } = expect.unreachable()] = fixture.adoptions;
    expect([adoption.keyId, caller]).toEqual([keyId, operator]);
    fixture.adopt(adoption);
    const statements = fixture.store.statements.length;
    expect(await verify(fixture.context, RAW_KEY, "default", NOTHING, operator)).toEqual(verdict);
    expect(fixture.store.statements.length).toBe(statements + 1);
    expect(fixture.adoptions.length).toBe(1);
  });

  test("is answered synchronously from the cache before its adoption", async () => {
    const fixture = newFixture({ byHash: true });
    const keyId = importAs(fixture, RAW_KEY);
    await verify(fixture.context, RAW_KEY);
    const statements = fixture.store.statements.length;
    for (let again = 0; again < 4; again++) {
      const verdict = verify(fixture.context, RAW_KEY);
      expect(verdict).not.toBeInstanceOf(Promise);
      expect(outcome(await verdict)).toBe(`VALID ${keyId}`);
    }
    expect(fixture.store.statements.length).toBe(statements);
  });

  test("is valid on a node that has cached nothing, or only the key, or only the credential", async () => {
    const fixture = newFixture({ byHash: true });
    const keyId = importAs(fixture, RAW_KEY);
    await verify(fixture.context, RAW_KEY);
    fixture.changed(keyId);
    expect(await outcomeOf(fixture, RAW_KEY)).toBe(`VALID ${keyId}`);
    expect(outcome(await verify({ ...fixture.context, credentials: null }, RAW_KEY))).toBe(`VALID ${keyId}`);
    fixture.cache.clear();
    expect(await outcomeOf(fixture, RAW_KEY)).toBe(`VALID ${keyId}`);
  });

  test("is verified by each mode of the cache", async () => {
    const fixture = newFixture({ byHash: true });
    const keyId = importAs(fixture, RAW_KEY);
    for (const mode of ["no-store", "no-cache", "default", "no-store", "no-cache"] as const)
      expect(outcome(await verify(fixture.context, RAW_KEY, mode))).toBe(`VALID ${keyId}`);
  });

  test("is found once it is imported, though its raw key was looked up in vain before", async () => {
    const fixture = newFixture({ byHash: true });
    expect(await outcomeOf(fixture, RAW_KEY)).toBe("NOT_FOUND");
    expect(verify(fixture.context, RAW_KEY)).not.toBeInstanceOf(Promise);
    const keyId = importAs(fixture, RAW_KEY);
    const digests = fixture.store.records.get(keyId)?.secrets.map(({ digest }) => digest.digest) ?? [];
    fixture.cache.invalidate({ keyIds: [], digests });
    expect(await outcomeOf(fixture, RAW_KEY)).toBe(`VALID ${keyId}`);
  });

  test("does not join a read that was sent before its scheme was in use", async () => {
    const fixture = newFixture({ byHash: true });
    const { current } = fixture.hashes;
    fixture.hashes.current = { schemes: [FAST_WITH_PREFIX], prefixLengths: [] };
    expect(await outcomeOf(fixture, RAW_KEY)).toBe("NOT_FOUND");
    fixture.cache.clear();
    fixture.store.isHolding = true;
    const before = outcomeOf(fixture, RAW_KEY);
    await nextTurn();
    fixture.store.held[0]?.release();
    await nextTurn();
    const keyId = importAs(fixture, RAW_KEY);
    fixture.hashes.current = current;
    const after = outcomeOf(fixture, RAW_KEY);
    for (let again = 0; again < 5; again++) {
      for (const statement of [...fixture.store.held]) statement.release("then");
      await nextTurn();
    }
    expect(await before).toBe("NOT_FOUND");
    expect(await after).toBe(`VALID ${keyId}`);
  });

  test.each([
    ["KEY_REVOKED", { revokeTime: new Date(NOW) }],
    ["EXPIRED", { expireTime: new Date(NOW) }],
    ["DISABLED", { disableTime: new Date(NOW) }],
  ])("is %s for its raw key only, and is not adopted", async (reason, change) => {
    const fixture = newFixture({ byHash: true });
    const keyId = importAs(fixture, RAW_KEY, change);
    const verdict = await verify(fixture.context, RAW_KEY, "default", NOTHING, operator);
    expect(verdict).toMatchObject({ valid: false, reason, keyId });
    expect(await verify(fixture.context, WRONG, "default", NOTHING, operator)).toEqual(
      await verify(newFixture().context, WRONG),
    );
    expect(fixture.adoptions).toEqual([]);
  });

  test("is invalid for each wrong raw key, also one that is cached", async () => {
    const fixture = newFixture({ byHash: true });
    const keyId = importAs(fixture, RAW_KEY);
    await verify(fixture.context, RAW_KEY);
    for (const wrong of [WRONG, `${RAW_KEY} `, RAW_KEY.slice(0, -1), RAW_KEY.toUpperCase(), "sk_live", ""]) {
      for (let again = 0; again < 3; again++) {
        expect(await verify(fixture.context, wrong)).toMatchObject({ reason: "NOT_FOUND", keyId: null });
      }
    }
    expect(await outcomeOf(fixture, RAW_KEY)).toBe(`VALID ${keyId}`);
  });

  test("is not found by others with its prefix in its entry of the cache", async () => {
    const fixture = newFixture({ byHash: true });
    importAs(fixture, RAW_KEY);
    await verify(fixture.context, WRONG);
    await verify(fixture.context, RAW_KEY);
    const restricted = restrictedTo(fixture.context, { actorIds: ["actor_2"] });
    expect(outcome(await verify(restricted, RAW_KEY))).toBe("NOT_FOUND");
    const own = restrictedTo(fixture.context, { actorIds: ["actor_1"] });
    expect(outcome(await verify(own, RAW_KEY))).toMatch(/^VALID/);
    expect(outcome(await verify(own, WRONG))).toBe("NOT_FOUND");
  });

  test("computes no slow hash for a caller who may not know of the key", async () => {
    const fixture = newFixture({ byHash: true });
    importAs(fixture, RAW_KEY);
    const restricted = restrictedTo(fixture.context, { actorIds: ["actor_2"] });
    for (const credential of [RAW_KEY, WRONG]) expect(outcome(await verify(restricted, credential))).toBe("NOT_FOUND");
    expect(fixture.hashes.computed).toEqual([]);
  });

  test("is verified under each root secret of the ring, and adopted under the current one", async () => {
    const old = newRoots();
    const rotated = newFixture({ byHash: true, roots: { ...newRoots(), retired: [old.current] } });
    const before = newFixture({ byHash: true, roots: old });
    const keyId = importAs(before, RAW_KEY);
    rotated.store.put(before.store.records.get(keyId) ?? expect.unreachable());
    rotated.store.prefixes.set(keyId, before.store.prefixes.get(keyId) ?? []);
    expect(outcome(await verify(rotated.context, RAW_KEY, "default", NOTHING, operator))).toBe(`VALID ${keyId}`);
    const [{ adoption } = expect.unreachable()] = rotated.adoptions;
    expect(adoption.digest.keyId).toBe(rotated.rings.digest.current.id);
    const [, ...retired] = rotated.rings.digest.all;
    expect(adoption.otherDigests.map((one) => one.keyId)).toEqual(retired.map(({ id }) => id));
  });

  test("yields to a key that was imported by the raw key itself", async () => {
    const fixture = newFixture({ byHash: true });
    importAs(fixture, RAW_KEY);
    await verify(fixture.context, RAW_KEY);
    const raw = fixture.importRaw(RAW_KEY, { revokeTime: new Date(NOW) });
    const digests = fixture.store.records.get(raw.keyId)?.secrets.map(({ digest }) => digest.digest) ?? [];
    fixture.cache.invalidate({ keyIds: [], digests });
    expect(await outcomeOf(fixture, RAW_KEY)).toBe("KEY_REVOKED");
  });

  test("decides again after a deletion and another import", async () => {
    const fixture = newFixture({ byHash: true });
    const first = importAs(fixture, RAW_KEY);
    await verify(fixture.context, RAW_KEY);
    fixture.store.records.delete(first);
    fixture.changed(first);
    expect(await outcomeOf(fixture, RAW_KEY)).toBe("NOT_FOUND");
    const second = importAs(fixture, RAW_KEY);
    const digests = fixture.store.records.get(second)?.secrets.map(({ digest }) => digest.digest) ?? [];
    fixture.cache.invalidate({ keyIds: [], digests });
    expect(await outcomeOf(fixture, RAW_KEY)).toBe(`VALID ${second}`);
  });

  test("answers from the cache without a lease, marked as stale", async () => {
    const fixture = newFixture({ byHash: true });
    const keyId = importAs(fixture, RAW_KEY);
    await verify(fixture.context, RAW_KEY, "default", NOTHING, operator);
    fixture.setCoherent(false);
    fixture.renewable(false);
    await expect(verify(fixture.context, RAW_KEY)).rejects.toThrow("no lease");
    fixture.staleGrace(true);
    fixture.hashes.lookups = () => Promise.reject(new Error("hash formats are read"));
    const verdict = await verify(fixture.context, RAW_KEY, "default", NOTHING, operator);
    expect([outcome(verdict), verdict.isStale]).toEqual([`VALID ${keyId}`, true]);
    // Nobody asks for an adoption while the database is unreachable.
    expect(fixture.adoptions.length).toBe(1);
    await expect(verify(fixture.context, `${RAW_KEY}2`)).rejects.toThrow("no lease");
  });

  test("is explained as it is verified", async () => {
    const fixture = newFixture({ byHash: true });
    const keyId = importAs(fixture, RAW_KEY);
    const explanation = await explain(fixture.context, { credential: RAW_KEY }, NOTHING);
    expect(explanation).toMatchObject({ verdict: { valid: true }, key: { keyId } });
    expect(await explain(fixture.context, { credential: WRONG }, NOTHING)).toMatchObject({
      verdict: { reason: "NOT_FOUND" },
      key: null,
    });
    expect(await explain(fixture.context, { keyId }, NOTHING)).toMatchObject({ verdict: { valid: true } });
  });

  test("keeps its derived tokens at its adoption", async () => {
    const fixture = newFixture({ byHash: true });
    const keyId = importAs(fixture, RAW_KEY);
    const tokens = [fixture.jwt(keyId, NOW + HOUR), fixture.macaroon(keyId, NOW + HOUR)];
    const outcomes = async () => {
      const verdicts = await verifyAll(fixture.context, requestsOf([RAW_KEY, ...tokens]), "default", operator);
      return verdicts.map(outcome);
    };
    expect(await outcomes()).toEqual([1, 2, 3].map(() => `VALID ${keyId}`));
    fixture.adopt(fixture.adoptions[0]?.adoption ?? expect.unreachable());
    expect(await outcomes()).toEqual([1, 2, 3].map(() => `VALID ${keyId}`));
  });
});

describe("a slow hash", () => {
  test.each(["revokeTime", "disableTime"] as const)(
    "does not outlast a change of %s that returns while it is computed",
    async (time) => {
      const fixture = newFixture({ byHash: true });
      const keyId = fixture.importSlow(RAW_KEY);
      const { begun, release } = fixture.hashes.hold();
      const verdict = verify(fixture.context, RAW_KEY, "default", NOTHING, operator);
      await begun;
      const record = fixture.store.records.get(keyId) ?? expect.unreachable();
      fixture.store.put({ ...record, key: { ...record.key, [time]: new Date(NOW) } });
      fixture.changed(keyId);
      release();
      expect(await verdict).toMatchObject({ valid: false, keyId });
      expect(fixture.adoptions).toEqual([]);
    },
  );

  test("does not outlast the deletion of its key", async () => {
    const fixture = newFixture({ byHash: true });
    const keyId = fixture.importSlow(RAW_KEY);
    const { begun, release } = fixture.hashes.hold();
    const verdict = outcomeOf(fixture, RAW_KEY);
    await begun;
    fixture.store.records.delete(keyId);
    fixture.changed(keyId);
    release();
    expect(await verdict).toBe("NOT_FOUND");
  });

  test("is valid if its key is adopted while it is computed", async () => {
    const fixture = newFixture({ byHash: true });
    const keyId = fixture.importSlow(RAW_KEY);
    await verify(fixture.context, RAW_KEY, "no-store", NOTHING, operator);
    const { begun, release } = fixture.hashes.hold();
    const verdict = outcomeOf(fixture, RAW_KEY);
    await begun;
    fixture.adopt(fixture.adoptions[0]?.adoption ?? expect.unreachable());
    release();
    expect(await verdict).toBe(`VALID ${keyId}`);
  });

  test("yields to a raw key that is imported and revoked while it is computed", async () => {
    const fixture = newFixture({ byHash: true });
    fixture.importSlow(RAW_KEY);
    const { begun, release } = fixture.hashes.hold();
    const verdict = outcomeOf(fixture, RAW_KEY);
    await begun;
    fixture.importRaw(RAW_KEY, { revokeTime: new Date(NOW) });
    release();
    expect(await verdict).toBe("KEY_REVOKED");
  });

  test("is OVERLOADED for single calls and INTERNAL in a batch, whose other credentials have verdicts", async () => {
    const fixture = newFixture({ byHash: true });
    const keyId = fixture.importSlow(RAW_KEY);
    const { credential, keyId: issued } = fixture.issue();
    fixture.hashes.isOverloaded = true;
    for (const one of [RAW_KEY, WRONG])
      await expect(verify(fixture.context, one)).rejects.toMatchObject({ code: "OVERLOADED" });
    const verdicts = await verifyAll(fixture.context, requestsOf([RAW_KEY, WRONG, credential, "unknown"]));
    expect(verdicts.map(outcome)).toEqual(["INTERNAL", "INTERNAL", `VALID ${issued}`, "NOT_FOUND"]);
    expect(fixture.faults).toEqual([]);
    fixture.hashes.isOverloaded = false;
    expect(await outcomeOf(fixture, RAW_KEY)).toBe(`VALID ${keyId}`);
    expect(await outcomeOf(fixture, WRONG)).toBe("NOT_FOUND");
  });

  test("of wrong raw keys does not evict other keys from the cache", async () => {
    const fixture = newFixture({ byHash: true, maxEntries: 20 });
    fixture.importSlow(RAW_KEY);
    const raw = fixture.importRaw("a raw key");
    await verify(fixture.context, raw.credential);
    for (let wrong = 0; wrong < 100; wrong++) await verify(fixture.context, `${RAW_KEY}${wrong}`);
    expect(verify(fixture.context, raw.credential)).not.toBeInstanceOf(Promise);
  });

  test("decides by the strictest key of several that the raw key is, each found by another prefix", async () => {
    const fixture = newFixture({ byHash: true });
    fixture.hashes.current = { ...fixture.hashes.current, prefixLengths: [8, 10] };
    const other = fixture.importSlow(RAW_KEY, {}, 10);
    const wrong = fixture.importSlow(`${RAW_KEY}2`, { revokeTime: new Date(NOW) });
    expect(await outcomeOf(fixture, RAW_KEY)).toBe(`VALID ${other}`);
    fixture.store.records.delete(wrong);
    fixture.changed(wrong);
    fixture.importSlow(RAW_KEY, { revokeTime: new Date(NOW) });
    expect(await outcomeOf(fixture, RAW_KEY)).toBe("KEY_REVOKED");
  });
});

test("without keys known by a hash, an unknown raw key is one read, and then none", async () => {
  for (const byHash of [true, false]) {
    const fixture = newFixture({ byHash });
    fixture.hashes.current = { schemes: [], prefixLengths: [] };
    expect(await outcomeOf(fixture, RAW_KEY)).toBe("NOT_FOUND");
    expect(verify(fixture.context, RAW_KEY)).not.toBeInstanceOf(Promise);
    expect(fixture.store.statements.length).toBe(1);
  }
});

test("an unknown raw key costs two reads with schemes in use, and then none", async () => {
  const fixture = newFixture({ byHash: true });
  fixture.importFast(RAW_KEY);
  expect(await outcomeOf(fixture, WRONG)).toBe("NOT_FOUND");
  expect(fixture.store.statements.length).toBe(2);
  expect(verify(fixture.context, WRONG)).not.toBeInstanceOf(Promise);
});

test("keys with one prefix are not reported as duplicates, but those with one raw key are", async () => {
  const fixture = newFixture({ byHash: true });
  fixture.hashes.current = { ...fixture.hashes.current, prefixLengths: [8, 10] };
  fixture.importSlow(`${RAW_KEY}1`, {}, 8);
  fixture.importSlow(`${RAW_KEY}2`, {}, 10);
  const reports: (readonly string[])[] = [];
  const findKeys = reportingDuplicates(fixture.store.findKeys, (keyIds) => reports.push(keyIds));
  const hashes = [8, 10].flatMap((length) => fixture.hashes.prefixDigests(RAW_KEY, length));
  const lookup = { keyId: null, digests: [], hashes: hashes.map(({ digest }) => digest) };
  expect(await findKeys([lookup])).toMatchObject([[{}, {}]]);
  expect(reports).toEqual([]);
  const twice = [FAST, FAST_WITH_PREFIX].map((scheme) => fixture.importFast(RAW_KEY, {}, scheme));
  const digests = [FAST, FAST_WITH_PREFIX].flatMap((scheme) => fixture.hashes.fastDigests(RAW_KEY, scheme));
  await findKeys([{ ...lookup, digests: digests.map(({ digest }) => digest) }]);
  expect(reports).toEqual([twice.sort()]);
});

import { describe, expect, test } from "vitest";
import { derive, importKey, newRawKey, revoke, succeeded, useService } from "../support/conformance.ts";
import { eventually } from "../support/keyhold.ts";
import { lockTable } from "../support/locked-row.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";
import { seededBy } from "../support/seeded.ts";
import { kidOf, rotateUnder, untilPublished } from "../support/signing-keys.ts";

const suite = useService();
const { rest } = suite;

const verifyPath = `${paths.keys}:verify`;
const batchPath = `${paths.keys}:batchVerify`;
const ask = async (credential: string, cacheControl: string): Promise<Json> =>
  succeeded(await rest("POST", verifyPath, { credential }, { "cache-control": cacheControl }));

/** Returns one credential of each type. */
async function credentialsOfEachType(): Promise<string[]> {
  const issued = await issue(rest, { scopes: ["read", "write"] });
  const imported = await importKey(rest);
  const jwt = (await derive(rest, issued.secret)).token;
  const macaroon = (await derive(rest, imported.rawKey, { algorithm: "TOKEN_ALGORITHM_MACAROON" })).token;
  return [issued.secret, imported.rawKey, jwt, macaroon];
}

/** Runs `work` while no statement can read or write a key. */
async function withoutKeys(work: () => Promise<void>): Promise<void> {
  const unlock = await lockTable(suite.sql, "api_keys");
  try {
    await work();
  } finally {
    await unlock();
  }
}

describe("a credential that was verified before", () => {
  test("is verified without the database, for every type, alone and in a batch", async () => {
    const all = await credentialsOfEachType();
    const before = await Promise.all(all.map((credential) => verify(rest, credential)));
    expect(before.map(({ is_valid }) => is_valid)).toEqual(all.map(() => true));
    await withoutKeys(async () => {
      for (const [place, credential] of all.entries()) expect(await verify(rest, credential)).toEqual(before[place]);
      const requests = all.map((credential) => ({ credential }));
      expect(succeeded(await rest("POST", batchPath, { requests })).results).toEqual(before);
    });
  });

  test("is read again with no-cache, and the cache keeps the new result", async () => {
    const { secret, keyId } = await issue(rest);
    await verify(rest, secret);
    await changeWithoutNotification(keyId);
    expect((await verify(rest, secret)).actor_id).toBe("actor_1");
    expect((await ask(secret, "no-cache")).actor_id).toBe("someone else");
    expect((await verify(rest, secret)).actor_id).toBe("someone else");
  });

  test("is read again with no-store, and the cache does not keep the result", async () => {
    const { secret, keyId } = await issue(rest);
    await verify(rest, secret);
    await changeWithoutNotification(keyId);
    expect((await ask(secret, "no-store")).actor_id).toBe("someone else");
    expect((await verify(rest, secret)).actor_id).toBe("actor_1");
  });
});

test("a credential that was only verified with no-store is not cached", async () => {
  const { secret, keyId } = await issue(rest);
  await ask(secret, "no-store");
  await changeWithoutNotification(keyId);
  expect((await verify(rest, secret)).actor_id).toBe("someone else");
});

test("a change made directly in the database invalidates the cache", async () => {
  const { secret, keyId } = await issue(rest);
  await verify(rest, secret);
  await suite.sql`UPDATE api_keys SET actor_id = 'someone else' WHERE key_id = ${keyId}`;
  await eventually(async () => (await verify(rest, secret)).actor_id === "someone else");
  await suite.sql`TRUNCATE api_keys`;
  await eventually(async () => !(await verify(rest, secret)).is_valid);
});

/** Changes a key without a notification, so that the verdict shows whether it came from the database. */
async function changeWithoutNotification(keyId: string): Promise<void> {
  await suite.sql.begin(async (sql) => {
    await sql`ALTER TABLE api_keys DISABLE TRIGGER key_changed`;
    await sql`UPDATE api_keys SET actor_id = 'someone else' WHERE key_id = ${keyId}`;
    await sql`ALTER TABLE api_keys ENABLE TRIGGER key_changed`;
  });
}

describe("the next verification sees a change:", () => {
  test("a rotation with a grace period, for both secrets", async () => {
    const { secret, keyId } = await issue(rest);
    await verify(rest, secret);
    const rotated = succeeded(await rest("POST", `${paths.issued}/${keyId}:rotate`, { grace_period: "1h" }));
    for (const credential of [secret, rotated.secret, secret, rotated.secret])
      expect((await verify(rest, credential)).is_valid).toBe(true);
    await rest("POST", `${paths.issued}/${keyId}:rotate`, {});
    for (const credential of [secret, rotated.secret]) expect((await verify(rest, credential)).is_valid).toBe(false);
  });

  test("an import of a raw key that is cached as not found, alone, in a batch, and after a deletion", async () => {
    for (const path of [paths.imported, `${paths.imported}:batchCreate`]) {
      const rawKey = newRawKey();
      expect((await verify(rest, rawKey)).is_valid).toBe(false);
      const item = { raw_key: rawKey, name: "n", actor_id: "a" };
      const body = succeeded(await rest("POST", path, path === paths.imported ? item : { requests: [item] }));
      const verdict = await verify(rest, rawKey);
      expect(verdict.is_valid).toBe(true);
      expect(body.key_id ?? body.results[0].imported_api_key.key_id).toBe(verdict.key_id);
      succeeded(await rest("DELETE", `${paths.imported}/${verdict.key_id}`));
      expect((await verify(rest, rawKey)).is_valid).toBe(false);
      expect((await importKey(rest, { raw_key: rawKey })).keyId).toBe((await verify(rest, rawKey)).key_id);
    }
  });
});

test("a JWT is invalid once its signing key is deleted from the database", async () => {
  const { secret } = await issue(rest);
  const { token } = await derive(rest, secret);
  expect((await verify(rest, token)).is_valid).toBe(true);
  const kid = await rotateUnder(suite.sql);
  await suite.sql`DELETE FROM signing_keys WHERE kid = ${kidOf(token)}`;
  await untilPublished(rest, [kid]);
  expect((await verify(rest, token)).is_valid).toBe(false);
  expect((await verify(rest, secret)).is_valid).toBe(true);
});

const KEYS = 40;
const VERIFIERS = 8;

test("no verification that starts after a revocation has returned accepts the key, with other calls in flight", async () => {
  const seeded = seededBy("KEYHOLD_CACHE_SEED");
  const keys = await Promise.all(Array.from({ length: KEYS }, () => issue(rest)));
  const revoked = new Set<string>();
  const late: string[] = [];
  let good = 0;
  const verifyForever = async () => {
    while (revoked.size < KEYS) {
      const { secret, keyId } = seeded.pick(keys);
      const wasRevoked = revoked.has(keyId);
      const { is_valid } = seeded.below(4) === 0 ? await ask(secret, "no-cache") : await verify(rest, secret);
      if (is_valid) good++;
      if (is_valid && wasRevoked) late.push(keyId);
    }
  };
  const revokeAll = async () => {
    for (const { keyId } of seeded.shuffled(keys)) {
      await revoke(rest, keyId);
      revoked.add(keyId);
    }
  };
  await Promise.all([revokeAll(), ...Array.from({ length: VERIFIERS }, verifyForever)]);
  expect(late).toEqual([]);
  expect(good).toBeGreaterThan(KEYS / 2);
});

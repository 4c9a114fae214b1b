import { afterAll, beforeAll, expect, test } from "vitest";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { createLastUsedStore } from "../../src/postgres/keys/verification-store.ts";
import { derive, importKey, succeeded, useService } from "../support/conformance.ts";
import { issue, paths, verify } from "../support/rest.ts";
import { useOf } from "../support/uses.ts";

const suite = useService();
let pool: Pool;
beforeAll(() => {
  pool = new Pool({ url: suite.server.databaseUrl, maxConnections: 1, statementTimeout: 10_000, prepare: true });
});
afterAll(() => pool.close());

async function lastUsed(keyId: string, collection: string = paths.issued): Promise<string | undefined> {
  return succeeded(await suite.rest("GET", `${collection}/${keyId}`)).last_used_time;
}

test("last_used_time is set after a use, to the minute, for every kind of credential and for no rejected one", async () => {
  const { rest, server } = suite;
  const [used, unused, rotated, parent, batched] = [
    await issue(rest),
    await issue(rest),
    await issue(rest),
    await issue(rest),
    await issue(rest),
  ];
  const imported = await importKey(rest);
  expect([await lastUsed(used.keyId), used.record.last_used_time]).toEqual([undefined, undefined]);
  await rest("POST", `${paths.issued}/${rotated.keyId}:rotate`, {});
  const before = Date.now();
  await verify(rest, used.secret);
  await verify(rest, rotated.secret);
  await verify(rest, imported.rawKey);
  await verify(rest, (await derive(rest, parent.secret)).token);
  await rest("POST", `${paths.keys}:batchVerify`, { requests: [{ credential: batched.secret }] });
  await server.restart();
  const after = Date.now();

  const times = [
    await lastUsed(used.keyId),
    await lastUsed(imported.keyId, paths.imported),
    await lastUsed(parent.keyId),
    await lastUsed(batched.keyId),
  ];
  for (const time of times) {
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:00Z$/);
    expect(Date.parse(time ?? "")).toBeGreaterThan(before - 60_000);
    expect(Date.parse(time ?? "")).toBeLessThanOrEqual(after);
  }
  expect([await lastUsed(unused.keyId), await lastUsed(rotated.keyId)]).toEqual([undefined, undefined]);
});

test("a use is not a change", async () => {
  const { rest, server } = suite;
  const { keyId, secret, record } = await issue(rest);
  await verify(rest, secret);
  await server.restart();
  const now = succeeded(await rest("GET", `${paths.issued}/${keyId}`));
  expect(now).toEqual({ ...record, last_used_time: now.last_used_time });
  expect(now.last_used_time).toBeDefined();
});

test("the last use of an older secret only increases, and ends with its secret", async () => {
  const touch = createLastUsedStore(pool);
  const { keyId } = await issue(suite.rest);
  const rotate = () => suite.rest("POST", `${paths.issued}/${keyId}:rotate`, { grace_period: "1h" });
  const versionOf = async () =>
    (await suite.sql`SELECT secret_version AS v FROM api_keys WHERE key_id = ${keyId}`)[0]?.v;
  const [first] = [await versionOf(), await rotate()];
  const [second] = [await versionOf(), await rotate()];
  const usesOf = async () => {
    const { previous_secrets: secrets } = succeeded(await suite.rest("GET", `${paths.issued}/${keyId}`));
    return secrets.map((secret: { last_used_time?: string }) => secret.last_used_time?.slice(11, 16));
  };
  const used = async (minute: string, ...secrets: (number | null)[]) => {
    const uses = secrets.map((oldSecret) => useOf(keyId, { oldSecret }));
    await touch([...uses, useOf(crypto.randomUUID(), { oldSecret: 1 })], new Date(`2026-01-01T${minute}:00Z`));
    return usesOf();
  };
  expect(await used("10:05", first)).toEqual([undefined, "10:05"]);
  expect(await used("10:04", first, second)).toEqual(["10:04", "10:05"]);
  expect(await used("10:06", null, first, 12345)).toEqual(["10:04", "10:06"]);
  await suite.rest("POST", `${paths.issued}/${keyId}:endGrace`, {});
  await rotate();
  expect(await used("10:07", first)).toEqual([undefined]);
  const [row] = await suite.sql`SELECT secret_uses FROM api_keys WHERE key_id = ${keyId}`;
  expect(row).toEqual({ secret_uses: null });
});

test("last_used_time only increases, for any order of writes", async () => {
  const touch = createLastUsedStore(pool);
  const { keyId } = await issue(suite.rest);
  const written = [];
  for (const minute of ["10:05", "10:04", "10:05", "10:06", "09:00"]) {
    await touch([useOf(keyId), useOf(crypto.randomUUID())], new Date(`2026-01-01T${minute}:00Z`));
    written.push(await lastUsed(keyId));
  }
  const expected = ["10:05", "10:05", "10:05", "10:06", "10:06"].map((minute) => `2026-01-01T${minute}:00Z`);
  expect(written).toEqual(expected);
});

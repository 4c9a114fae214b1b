import { expect, onTestFinished, test } from "vitest";
import { deriveKeyRing, parseRootSecret } from "../../src/domain/server-keys.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { propagating } from "../../src/postgres/cluster/change-committer.ts";
import { CHANGES_CHANNEL } from "../../src/postgres/cluster/change-feed-events.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { openPrimary } from "../../src/postgres/connection/primary.ts";
import { createSigningKeyStore } from "../../src/postgres/signing/signing-key-store.ts";
import { generateSigningKey } from "../../src/token/signing-key.ts";
import { anyServer, noNodes } from "../support/no-cluster.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { startCuttingProxy } from "../support/tcp-proxy.ts";
import { openSchema } from "./new-keys.ts";

const ring = deriveKeyRing({ current: parseRootSecret(ROOT_SECRET), retired: [] }, "signing-key-wrap");
const newSigningKey = () => generateSigningKey("ES256", ring.current, systemRandom);
const NOW = new Date("2026-01-02T03:04:05.678Z");

test("a new active key retires the previous one and notifies listeners", async () => {
  const { url, pool } = await openSchema();
  const store = createSigningKeyStore(pool, propagating(pool, noNodes), anyServer);
  const [first, second] = [newSigningKey(), newSigningKey()];
  await store.addFirst(first, NOW);
  const received = Promise.withResolvers<string>();
  const onNotification = (_channel: string, payload: string) => received.resolve(payload);
  const listening = openPrimary({ url, statementTimeout: 0, prepare: false, onNotification });
  onTestFinished(() => listening.end({ timeout: 1 }));
  await (await listening.ready).unsafe(`LISTEN "${CHANGES_CHANNEL}"`);
  await store.replaceActive(second, NOW);
  expect(await received.promise).toBe("signing_keys");
  const records = new Map((await store.list()).map(({ kid, ...record }) => [kid, record]));
  expect(records.get(first.kid)).toMatchObject({ retireTime: NOW });
  expect(records.get(second.kid)).toMatchObject({
    retireTime: null,
    createTime: NOW,
    publicJwk: second.publicJwk,
    wrapped: Buffer.from(second.wrapped),
    wrapKeyId: second.wrapKeyId,
  });
});

test("one of many keys activated concurrently is active, and no key is lost", async () => {
  const { pool } = await openSchema();
  const store = createSigningKeyStore(pool, propagating(pool, noNodes), anyServer);
  await store.addFirst(newSigningKey(), NOW);
  const made = await Promise.allSettled(Array.from({ length: 20 }, () => store.replaceActive(newSigningKey(), NOW)));
  const records = await store.list();
  expect(records.filter(({ retireTime }) => retireTime === null)).toHaveLength(1);
  expect(records).toHaveLength(1 + made.filter(({ status }) => status === "fulfilled").length);
});

test("a revoked key is deleted, and an active one is replaced in the same transaction", async () => {
  const { pool } = await openSchema();
  const store = createSigningKeyStore(pool, propagating(pool, noNodes), anyServer);
  const [first, second, third, unused] = [newSigningKey(), newSigningKey(), newSigningKey(), newSigningKey()];
  const kids = async () => (await store.list()).map(({ kid, retireTime }) => [kid, retireTime === null]);
  await store.addFirst(first, NOW);
  await store.replaceActive(second, NOW);
  expect(await store.revoke(second.kid, null, NOW)).toEqual({ kid: null, replacement: null });
  expect(await store.revoke(first.kid, unused, NOW)).toEqual({ kid: first.kid, replacement: null });
  expect(await kids()).toEqual([[second.kid, true]]);
  expect(await store.revoke(second.kid, third, NOW)).toEqual({ kid: second.kid, replacement: third.kid });
  expect(await kids()).toEqual([[third.kid, true]]);
  expect(await store.revoke(second.kid, unused, NOW)).toEqual({ kid: null, replacement: null });
  expect((await store.list())[0]).toMatchObject({ createTime: NOW, publicJwk: third.publicJwk, retireTime: null });
});

test("rotations and revocations at the same time leave exactly one active key", async () => {
  const { pool } = await openSchema();
  const store = createSigningKeyStore(pool, propagating(pool, noNodes), anyServer);
  const first = newSigningKey();
  await store.addFirst(first, NOW);
  const known = [first.kid];
  const change = async (isRotation: boolean) => {
    const key = newSigningKey();
    if (isRotation) await store.replaceActive(key, NOW);
    else if ((await store.revoke(known.at(-1) ?? "", key, NOW)).replacement === null) return;
    known.push(key.kid);
  };
  for (let round = 0; round < 10; round++) {
    // A rotation fails if another one, or a revocation, has created the active key.
    const changes = await Promise.allSettled([true, false, true, false, false].map(change));
    const refusals = changes.flatMap((one) => (one.status === "rejected" ? [one.reason.code] : []));
    expect(refusals.filter((code) => code !== "CONCURRENT_CHANGE" && code !== "23505")).toEqual([]);
    expect((await store.list()).filter(({ retireTime }) => retireTime === null)).toHaveLength(1);
  }
});

test("a rotation whose connection is cut at any point is executed or not, and its caller gets a result", async () => {
  const { url, pool: direct } = await openSchema();
  const proxy = await startCuttingProxy(url);
  onTestFinished(() => void proxy.close());
  const store = createSigningKeyStore(direct, propagating(direct, noNodes), anyServer);
  await store.addFirst(newSigningKey(), NOW);
  const outcomes: string[] = [];
  for (let answer = 0; ; answer++) {
    const pool = new Pool({ url: proxy.url, maxConnections: 1, statementTimeout: 10_000, prepare: true });
    proxy.cutAt(answer);
    const key = newSigningKey();
    const told = await createSigningKeyStore(pool, propagating(pool, noNodes), anyServer)
      .replaceActive(key, NOW)
      .then(
        () => "made",
        (error) => error.code,
      );
    const isCut = proxy.isCut();
    proxy.cutAt(Number.POSITIVE_INFINITY);
    await pool.close();
    const active = (await store.list()).filter(({ retireTime }) => retireTime === null);
    expect(active).toHaveLength(1);
    outcomes.push(`${told}, ${active[0]?.kid === key.kid ? "made" : "not made"}`);
    if (!isCut) break;
  }
  expect(new Set(outcomes)).toEqual(
    new Set(["DATABASE_UNAVAILABLE, not made", "DATABASE_UNAVAILABLE, made", "CHANGE_UNCONFIRMED, made", "made, made"]),
  );
});

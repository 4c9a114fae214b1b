import { randomBytes } from "node:crypto";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Verdict } from "../../src/domain/verdict.ts";
import { revokeKey } from "../../src/keys/revoke.ts";
import { type HashNode, hashedKey, openHashNode } from "../support/hash-nodes.ts";
import { eventually } from "../support/keyhold.ts";
import { isAwaited, lockRow } from "../support/locked-row.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { operator } from "../support/principal.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

const REVOCATION = { reason: "KEY_COMPROMISE", description: null } as const;
/** Short, since tests await its end; on a machine that stands still for a second, a node loses a shorter one. */
const LEASE = { KEYHOLD_LEASE_TTL: "3s" };

let database: TestDatabase;
let sql: postgres.Sql;
let other: HashNode;

beforeAll(async () => {
  database = await createTestDatabase();
  sql = postgres(database.ownerUrl, { max: 4, onnotice: () => {} });
  other = await openHashNode(database.url, LEASE);
});
afterAll(async () => {
  await other.close();
  await sql.end();
  await database.drop();
});

async function importHashed(kind: "fast" | "slow") {
  const rawKey = `${randomBytes(8).toString("hex")}-of-another-service`;
  const key = hashedKey(other, kind, rawKey);
  await other.keys.store.insert([key]);
  return { rawKey, keyId: key.key.keyId };
}

const outcome = (verdict: Verdict) => `${verdict.isStale ? "stale " : ""}${verdict.valid ? "VALID" : verdict.reason}`;
const outcomeOf = async ({ api }: HashNode, rawKey: string) => outcome(await api.verify(operator, rawKey));

/** A node whose connections go through a proxy, with a key that it has verified, whose adoption does not end. */
async function withUnadopted(kind: "fast" | "slow", environment: Record<string, string>, listenOnly: boolean) {
  const proxy = await TcpProxy.start(database.url);
  const urls: Record<string, string> = listenOnly ? { KEYHOLD_DATABASE_LISTEN_URL: proxy.url } : {};
  const node = await openHashNode(listenOnly ? database.url : proxy.url, { ...LEASE, ...urls, ...environment });
  const { rawKey, keyId } = await importHashed(kind);
  const row = await lockRow(sql, keyId);
  expect(await outcomeOf(node, rawKey)).toBe("VALID");
  await eventually(() => isAwaited(sql));
  const close = async () => {
    await node.close();
    await proxy.close();
  };
  return { proxy, node, rawKey, keyId, row, close };
}

describe.each(["fast", "slow"] as const)("a key with a %s hash that is not adopted", (kind) => {
  test("has stale verdicts in the grace period, and a revocation counts after it", async () => {
    const { proxy, node, rawKey, keyId, row, close } = await withUnadopted(kind, { KEYHOLD_STALE_GRACE: "4s" }, false);
    proxy.freeze();
    await eventually(async () => (await outcomeOf(node, rawKey)) === "stale VALID");
    await expect(node.api.verifyStrictly(operator, rawKey)).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
    await row.release();
    await revokeKey(other.keys, operator, { keyId, kind: null }, REVOCATION);
    await eventually(async () => (await outcomeOf(node, rawKey).catch(({ code }) => code)) === "DATABASE_UNAVAILABLE");
    proxy.thaw("reset");
    await eventually(async () => (await outcomeOf(node, rawKey).catch(({ code }) => code)) === "KEY_REVOKED");
    await close();
  });

  test("has no verdict while the database is unreachable without a grace period", async () => {
    const { proxy, node, rawKey, row, close } = await withUnadopted(kind, {}, false);
    await row.release();
    proxy.freeze();
    await eventually(async () => (await outcomeOf(node, rawKey).catch(({ code }) => code)) === "DATABASE_UNAVAILABLE");
    proxy.thaw("reset");
    await eventually(async () => (await outcomeOf(node, rawKey).catch(({ code }) => code)) === "VALID");
    await close();
  });

  test("is adopted, verified and revoked while a node has lost its feed", async () => {
    const { proxy, node, rawKey, keyId, row, close } = await withUnadopted(kind, {}, true);
    proxy.cut("rst");
    await row.release();
    await eventually(
      async () => (await sql`SELECT FROM api_keys WHERE key_id = ${keyId} AND adopt_time IS NOT NULL`).length > 0,
    );
    expect(await outcomeOf(node, rawKey)).toBe("VALID");
    proxy.cut("rst");
    await revokeKey(other.keys, operator, { keyId, kind: null }, REVOCATION);
    expect(await outcomeOf(node, rawKey)).toBe("KEY_REVOKED");
    await close();
  });
});

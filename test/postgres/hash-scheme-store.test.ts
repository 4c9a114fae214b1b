import postgres from "postgres";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { NewKey } from "../../src/keys/ports.ts";
import { openRealNode, type RealNode } from "../support/hash-nodes.ts";
import { eventually } from "../support/keyhold.ts";
import { isAwaited } from "../support/locked-row.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { newKey } from "./new-keys.ts";

let database: TestDatabase;
let sql: postgres.Sql;
let node: RealNode;

beforeAll(async () => {
  database = await createTestDatabase();
  sql = postgres(database.ownerUrl, { max: 3, onnotice: () => {} });
  node = await openRealNode(database.url);
});
afterAll(async () => {
  await node.close();
  await sql.end();
  await database.drop();
});
beforeEach(restore);

async function restore(): Promise<void> {
  await sql`DELETE FROM api_keys`;
  await sql`DELETE FROM hash_schemes`;
  await sql`DELETE FROM hash_prefix_lengths`;
  await sql`INSERT INTO hash_schemes (scheme_id, slot, algorithm, create_time) VALUES (1, 1, 'SHA256', '2026-01-01'), (9, 9, 'SCRYPT', now())`;
  await sql`INSERT INTO hash_prefix_lengths (length, slot, create_time) VALUES (8, 1, '2026-01-01')`;
}

const fastKey = (): NewKey => {
  const key = newKey();
  const hash = { schemeId: 1, parameters: null, adoptedExpireTime: null, lookup: null };
  return { ...key, key: { ...key.key, hashAlgorithm: "SHA256" }, hash };
};
const slowKey = (): NewKey => {
  const key = newKey();
  const lookup = { length: 8, digests: [{ keyId: "k1", digest: newKey().digest.digest }] };
  const hash = { schemeId: 9, parameters: "$scrypt$", adoptedExpireTime: null, lookup };
  return { ...key, key: { ...key.key, hashAlgorithm: "SCRYPT" }, hash };
};

const WHAT = [
  ["scheme", "hash_schemes WHERE scheme_id = 1", fastKey],
  ["prefix length", "hash_prefix_lengths", slowKey],
] as const;

const insert = (keys: readonly NewKey[]) => node.keys.store.insert(keys);
const removeUnused = () => node.resources.hashing.removeUnused();

/** Deletes in a transaction that ends when the returned function is called. */
async function holdDeletion(what: string): Promise<(end: "commit" | "rollback") => Promise<void>> {
  const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<"commit" | "rollback">()];
  const deleted = sql.begin(async (transaction) => {
    await transaction.unsafe(`DELETE FROM ${what}`);
    begun.resolve();
    if ((await held.promise) === "rollback") await transaction.unsafe("ROLLBACK AND CHAIN");
  });
  await Promise.race([begun.promise, deleted]);
  return async (end) => {
    held.resolve(end);
    await deleted;
  };
}

test.each(WHAT)("a key is not stored while its %s is deleted, but others of its batch are", async (_, what, make) => {
  for (const count of [1, 150]) {
    const end = await holdDeletion(what);
    const stored = insert([make(), ...Array.from({ length: count }, () => newKey())]);
    await eventually(() => isAwaited(sql));
    await end("commit");
    const [first, ...others] = (await stored).map(({ outcome }) => outcome);
    expect([first, ...new Set(others)]).toEqual(["hash_scheme_gone", "inserted"]);
    expect(await sql`SELECT FROM api_keys WHERE hash_scheme_id IS NOT NULL`).toHaveLength(0);
    await restore();
  }
});

test.each(WHAT)("a key is stored if the deletion of its %s is rolled back", async (_, what, make) => {
  const end = await holdDeletion(what);
  const stored = insert([make()]);
  await eventually(() => isAwaited(sql));
  await end("rollback");
  expect(await stored).toMatchObject([{ outcome: "inserted" }]);
});

test.each(WHAT)("a %s is kept for a key that is stored while it is removed", async (_, what, make) => {
  const held = Promise.withResolvers<void>();
  const { key, digest, hash } = make();
  const others = JSON.stringify(
    (hash?.lookup?.digests ?? []).map((one) => ({
      digest: Buffer.from(one.digest).toString("hex"),
      digest_key_id: "k1",
    })),
  );
  const stored = sql.begin(async (transaction) => {
    await transaction`
      INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id,
        other_digests, hash_algorithm, hash_scheme_id, hash_parameters, hash_prefix_length)
      VALUES (${key.keyId}, 'imported', 'n', 'a', '{}', '{}', '', now(), now(), ${Buffer.from(digest.digest)}, 'k1',
        ${others}::text::jsonb, ${key.hashAlgorithm}, ${hash?.schemeId ?? 0}, ${hash?.parameters ?? null}, ${hash?.lookup?.length ?? null})`;
    await held.promise;
  });
  await eventually(
    async () => (await sql`SELECT FROM pg_stat_activity WHERE state = 'idle in transaction'`).length > 0,
  );
  const removed = removeUnused();
  await eventually(() => isAwaited(sql));
  held.resolve();
  await stored;
  await removed;
  expect(await sql.unsafe(`SELECT FROM ${what}`)).toHaveLength(1);
  await expect(sql.unsafe(`DELETE FROM ${what}`)).rejects.toMatchObject({ code: "23503" });
});

test("what is unused is removed once it is two seconds old, and nothing is notified if there is nothing", async () => {
  const before = node.resources.coherence.hashSchemesVersion;
  await removeUnused();
  expect(await sql`SELECT scheme_id FROM hash_schemes`).toEqual([{ scheme_id: 9 }]);
  expect(await sql`SELECT FROM hash_prefix_lengths`).toHaveLength(0);
  await eventually(async () => node.resources.coherence.hashSchemesVersion > before);
  await insert([newKey()]);
  const after = node.resources.coherence.hashSchemesVersion;
  await removeUnused();
  await insert([newKey()]);
  expect(node.resources.coherence.hashSchemesVersion).toBe(after);
});

test("of what is old, what no key has is removed and the rest kept; what is new is kept and returned", async () => {
  await insert([slowKey()]);
  await sql`UPDATE hash_schemes SET create_time = '2026-01-01'`;
  await sql`INSERT INTO hash_schemes (scheme_id, slot, algorithm) VALUES (2, 2, 'SHA512')`;
  await sql`INSERT INTO hash_prefix_lengths (length, slot, create_time) VALUES (7, 2, '2026-01-01'), (6, 3, now())`;
  expect(await removeUnused()).toEqual({ schemeIds: [2], hasLength: true });
  expect(await sql`SELECT scheme_id FROM hash_schemes ORDER BY scheme_id`).toEqual([
    { scheme_id: 2 },
    { scheme_id: 9 },
  ]);
  expect(await sql`SELECT length FROM hash_prefix_lengths ORDER BY length`).toEqual([{ length: 6 }, { length: 8 }]);
});

/** The columns of a key that no verdict depends on, and that its lists and changes read from the database. */
const NOT_NOTIFIED = [
  ...[
    "last_used_time",
    "secret_uses",
    "last_used_address",
    "revoked_by",
    "disabled_by",
    "other_digests",
    "request_id",
    "request_fingerprint",
  ],
];

test("every node is notified of a change of any column of a key that a verdict depends on", async () => {
  const { key } = newKey();
  await insert([{ ...newKey(), key }]);
  const notified: string[] = [];
  const listening = await sql.listen("keyhold_changes", (text) => notified.push(text));
  const columns = await sql<{ name: string }[]>`
    SELECT column_name AS name FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = 'api_keys' AND is_generated = 'NEVER'`;
  const silent: string[] = [];
  for (const { name } of columns) {
    notified.length = 0;
    await sql`UPDATE api_keys SET ${sql(name)} = ${sql(name)} WHERE key_id = ${key.keyId}`;
    await sql`SELECT pg_notify('keyhold_changes', ${`end ${name}`})`;
    await eventually(async () => notified.includes(`end ${name}`));
    if (!notified.includes(`key ${key.keyId}`)) silent.push(name);
  }
  await listening.unlisten();
  expect(silent.sort()).toEqual(NOT_NOTIFIED.sort());
});

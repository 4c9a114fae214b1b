import { randomBytes } from "node:crypto";
import type { Sql } from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { migrate, readMigrations } from "../../src/postgres/migrations/migrate.ts";
import { connect } from "../support/driver-client.ts";
import { eventually } from "../support/keyhold.ts";
import { isAwaited } from "../support/locked-row.ts";
import { createEmptyDatabase, createTestDatabase, type TestDatabase, userOf } from "../support/postgres.ts";
import { newKey } from "./new-keys.ts";

async function fresh(create: () => Promise<TestDatabase>): Promise<TestDatabase> {
  const database = await create();
  onTestFinished(() => database.drop());
  return database;
}

function connectTo(url: string): Sql {
  const sql = connect({ url, statementTimeout: 10_000, prepare: false });
  onTestFinished(() => sql.end());
  return sql;
}

/** Inserts keys like release 0.1 and returns the identifiers of the stored ones. */
async function insertAsBefore(sql: Sql, kind: string, digests: readonly Uint8Array[]): Promise<string[]> {
  const rows = digests.map((digest) => {
    const { key } = newKey();
    return { key_id: key.keyId, digest: `\\x${Buffer.from(digest).toString("hex")}` };
  });
  const stored = await sql<{ keyId: string }[]>`
    INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id)
    SELECT key_id, ${kind}, 'n', 'a', '{}', '{}', '', now(), now(), digest, 'k1'
    FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS row (key_id uuid, digest bytea)
    ON CONFLICT DO NOTHING RETURNING key_id`;
  return stored.map(({ keyId }) => keyId);
}

async function registered(sql: Sql): Promise<Record<string, string>> {
  const rows = await sql<{ digest: Buffer; keyId: string }[]>`SELECT digest, key_id FROM raw_key_digests`;
  return Object.fromEntries(rows.map(({ digest, keyId }) => [digest.toString("hex"), keyId]));
}

const random = (count: number) => Array.from({ length: count }, () => randomBytes(32));
const hex = (digest: Uint8Array) => Buffer.from(digest).toString("hex");

test("the migration adds the digests of keys imported by an earlier release, and may be repeated", async () => {
  const { ownerUrl } = await fresh(createEmptyDatabase);
  const owner = connectTo(ownerUrl);
  const migrations = await readMigrations();
  await migrate(owner, migrations.slice(0, 5));
  const digests = random(3);
  const ids = await insertAsBefore(owner, "imported", digests);
  await insertAsBefore(owner, "issued", random(2));
  const expected = Object.fromEntries(ids.map((id, place) => [hex(digests[place] ?? Buffer.of()), id]));

  await migrate(owner, migrations);
  expect(await registered(owner)).toEqual(expected);
  await owner`INSERT INTO raw_key_digests (digest, key_id) VALUES ('\\x00', gen_random_uuid())`;
  await owner`DELETE FROM schema_migrations WHERE name = 'point_lookups'`;
  await migrate(owner, migrations);
  expect(await registered(owner)).toEqual(expected);
});

test("a key deleted while its digest is added leaves no digest", async () => {
  const { ownerUrl } = await fresh(createEmptyDatabase);
  const [owner, deleting, watching] = [connectTo(ownerUrl), connectTo(ownerUrl), connectTo(ownerUrl)];
  const migrations = await readMigrations();
  await migrate(owner, migrations.slice(0, 6));
  // A digest that bypasses the triggers, like one stored before 0006.
  await owner`ALTER TABLE api_keys DISABLE TRIGGER raw_keys_added`;
  const digests = random(1);
  const [keyId = ""] = await insertAsBefore(owner, "imported", digests);
  await owner`ALTER TABLE api_keys ENABLE TRIGGER raw_keys_added`;

  const migrated = await deleting.begin(async (tx) => {
    await tx`DELETE FROM api_keys WHERE key_id = ${keyId}`;
    const migrating = migrate(owner, migrations);
    await eventually(() => isAwaited(watching));
    return { migrating };
  });
  await migrated.migrating;
  expect(await registered(owner)).toEqual({});
  expect(await insertAsBefore(owner, "imported", digests)).toHaveLength(1);
});

test("keys stored and deleted by the earlier release are registered, although its role has no right to the table", async () => {
  const { url, ownerUrl } = await fresh(createTestDatabase);
  const [server, owner] = [connectTo(url), connectTo(ownerUrl)];
  await owner.unsafe(`REVOKE ALL ON raw_key_digests FROM ${userOf(url)}`);
  const digests = random(3);
  const [first = "", second, third] = await insertAsBefore(server, "imported", digests);
  await insertAsBefore(server, "issued", random(2));
  const of = (place: number) => hex(digests[place] ?? Buffer.of());
  expect(await registered(owner)).toEqual({ [of(0)]: first, [of(1)]: second, [of(2)]: third });

  expect(await insertAsBefore(server, "imported", digests)).toEqual([]);
  await server`DELETE FROM api_keys WHERE key_id = ${first}`;
  expect(await registered(owner)).toEqual({ [of(1)]: second, [of(2)]: third });
});

test("changes by SQL are registered", async () => {
  const { ownerUrl } = await fresh(createTestDatabase);
  const owner = connectTo(ownerUrl);
  const [before, after, other] = [randomBytes(32), randomBytes(32), randomBytes(32)];
  const [id = ""] = await insertAsBefore(owner, "imported", [before]);
  const others = owner.json([{ digest: hex(other), digest_key_id: "k2" }]);
  await owner`UPDATE api_keys SET digest = ${after}, other_digests = ${others} WHERE key_id = ${id}`;
  expect(await registered(owner)).toEqual({ [hex(after)]: id, [hex(other)]: id });
  await owner`UPDATE api_keys SET kind = 'issued' WHERE key_id = ${id}`;
  expect(await registered(owner)).toEqual({});
  await owner`UPDATE api_keys SET kind = 'imported' WHERE key_id = ${id}`;
  await owner`TRUNCATE api_keys`;
  expect(await registered(owner)).toEqual({});
});

test("tables of the same names in another schema of the caller stay unchanged", async () => {
  const { url, ownerUrl } = await fresh(createTestDatabase);
  const [server, owner] = [connectTo(url), connectTo(ownerUrl)];
  await server`CREATE TEMP TABLE raw_key_digests (digest bytea, key_id uuid)`;
  const digest = randomBytes(32);
  const [id] = await insertAsBefore(server, "imported", [digest]);
  expect(await server`SELECT FROM pg_temp.raw_key_digests`).toEqual([]);
  expect(await registered(owner)).toEqual({ [hex(digest)]: id });
});

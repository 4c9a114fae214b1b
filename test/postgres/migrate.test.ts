import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Sql } from "postgres";
import { expect, inject, onTestFinished, test } from "vitest";
import { type Migration, migrate, readMigrations } from "../../src/postgres/migrations/migrate.ts";
import { connect } from "../support/driver-client.ts";
import { createEmptyDatabase, type TestDatabase } from "../support/postgres.ts";
import { startTestServer } from "../support/server.ts";

async function newDatabase(): Promise<TestDatabase> {
  const database = await createEmptyDatabase();
  onTestFinished(() => database.drop());
  return database;
}

/** A connection with the settings of migrations. */
function connectTo({ ownerUrl }: TestDatabase): Sql {
  const sql = connect({ url: ownerUrl, statementTimeout: 0, prepare: false });
  onTestFinished(() => sql.end({ timeout: 0 }));
  return sql;
}

function migration(version: number, sql: string): Migration {
  return { version, name: `step_${version}`, sql, checksum: createHash("sha256").update(sql).digest("hex") };
}

async function applied(sql: Sql): Promise<number[]> {
  const rows = await sql<{ version: number }[]>`SELECT version FROM schema_migrations ORDER BY version`;
  return rows.map(({ version }) => version);
}

async function tables(sql: Sql): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename`;
  return rows.map(({ name }) => name).filter((name) => name !== "schema_migrations");
}

const MAKE_A = migration(1, "CREATE TABLE a (id int);\nINSERT INTO a VALUES (1); -- the first");
const MAKE_B = migration(2, "CREATE TABLE b (id int)");

test("migrations are numbered from 1 without a gap", async () => {
  const migrations = await readMigrations();
  expect(migrations.length).toBeGreaterThan(0);
  expect(migrations.map(({ version }) => version)).toEqual(migrations.map((_, index) => index + 1));
});

test("a file with a malformed name is refused, and other files are ignored", async () => {
  const folder = await mkdtemp(join(inject("testDir"), "migrations-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "0001_first.sql"), "SELECT 1");
  await writeFile(join(folder, "README.md"), "no migration");
  await mkdir(join(folder, "old"));
  const url = pathToFileURL(`${folder}/`);
  expect((await readMigrations(url)).map(({ version, name }) => [version, name])).toEqual([[1, "first"]]);
  await writeFile(join(folder, "2_second.sql"), "SELECT 2");
  await expect(readMigrations(url)).rejects.toThrow("migration 2_second.sql: not named NNNN_name.sql");
});

test("ten concurrent runs on an empty database apply each migration once", async () => {
  const database = await newDatabase();
  const migrations = [
    ...(await readMigrations()),
    migration(9001, "CREATE TABLE a (id int); INSERT INTO a VALUES (1)"),
  ];
  const done = await Promise.all(Array.from({ length: 10 }, () => migrate(connectTo(database), migrations)));
  const names = migrations.map(({ version, name }) => `${String(version).padStart(4, "0")}_${name}`);
  expect(done.flat().sort()).toEqual(names.sort());
  const sql = connectTo(database);
  expect(await sql`SELECT id FROM a`).toEqual([{ id: 1 }]);
  expect(await migrate(sql, migrations)).toEqual([]);
});

test("five servers that start concurrently on an empty database all serve", async () => {
  const database = await newDatabase();
  const servers = await Promise.all(
    Array.from({ length: 5 }, () => startTestServer({ KEYHOLD_DATABASE_URL: database.ownerUrl })),
  );
  const ready = await Promise.all(servers.map(({ url }) => fetch(`${url}/health/ready`)));
  expect(ready.map(({ status }) => status)).toEqual(servers.map(() => 200));
  const jwks = await Promise.all(
    servers.map(async ({ url }) => (await fetch(`${url}/v2alpha1/derivedKeys/jwks.json`)).text()),
  );
  expect(new Set(jwks).size).toBe(1);
  await Promise.all(servers.map((server) => server.close()));
});

test("a failed migration is rolled back, and those before it stay", async () => {
  const sql = connectTo(await newDatabase());
  const bad = migration(2, "CREATE TABLE half (id int); INSERT INTO half VALUES (1); SELECT 1 / 0");
  await expect(migrate(sql, [MAKE_A, bad])).rejects.toThrow("division by zero");
  expect(await applied(sql)).toEqual([1]);
  expect(await tables(sql)).toEqual(["a"]);
  expect(await migrate(sql, [MAKE_A, MAKE_B])).toEqual(["0002_step_2"]);
});

test("a migration whose connection is cut is rolled back, and does not block the next", async () => {
  const database = await newDatabase();
  const cut = migration(2, "CREATE TABLE half (id int); SELECT pg_terminate_backend(pg_backend_pid())");
  await expect(migrate(connectTo(database), [MAKE_A, cut])).rejects.toMatchObject({
    code: expect.stringMatching(/^(57P01|CONNECTION_CLOSED)$/),
  });
  const sql = connectTo(database);
  expect(await migrate(sql, [MAKE_A, MAKE_B])).toEqual(["0002_step_2"]);
  expect(await tables(sql)).toEqual(["a", "b"]);
});

test("a migration that was edited after it was applied is refused, and those after it are not applied", async () => {
  const sql = connectTo(await newDatabase());
  await migrate(sql, [MAKE_A]);
  const edited = migration(1, `${MAKE_A.sql}\nALTER TABLE a ADD more int`);
  await expect(migrate(sql, [edited, MAKE_B])).rejects.toThrow("migration step_1 was edited after it was applied");
  expect(await applied(sql)).toEqual([1]);
  expect(await tables(sql)).toEqual(["a"]);
});

test("a schema of a later version is unchanged", async () => {
  const sql = connectTo(await newDatabase());
  const ahead = [MAKE_A, MAKE_B, migration(3, "ALTER TABLE b ADD more int")];
  await migrate(sql, ahead);
  expect(await migrate(sql, [MAKE_A, MAKE_B])).toEqual([]);
  expect(await applied(sql)).toEqual([1, 2, 3]);
  expect(await sql`SELECT more FROM b`).toEqual([]);
});

const ONE_BY_ONE = `-- one by one
DROP INDEX CONCURRENTLY IF EXISTS a_id;
CREATE UNIQUE INDEX CONCURRENTLY a_id ON a (id); -- no transaction can do that
`;

test("one of ten concurrent runs builds an index while rows are written, and all return", async () => {
  const database = await newDatabase();
  await migrate(connectTo(database), [MAKE_A]);
  const writer = connectTo(database);
  const written = Promise.all(Array.from({ length: 200 }, (_, id) => writer`INSERT INTO a VALUES (${id + 2})`));
  const build = [MAKE_A, migration(2, ONE_BY_ONE)];
  const done = await Promise.all(Array.from({ length: 10 }, () => migrate(connectTo(database), build)));
  await written;
  expect(done.flat()).toEqual(["0002_step_2"]);
  expect(await indexes(writer, "a")).toEqual([{ name: "a_id", valid: true }]);
});

test("the next run builds an index that failed", async () => {
  const sql = connectTo(await newDatabase());
  await migrate(sql, [MAKE_A]);
  await sql`INSERT INTO a VALUES (1)`;
  const build = [MAKE_A, migration(2, ONE_BY_ONE)];
  await expect(migrate(sql, build)).rejects.toThrow("could not create unique index");
  expect(await applied(sql)).toEqual([1]);
  expect(await indexes(sql, "a")).toEqual([{ name: "a_id", valid: false }]);
  await sql`DELETE FROM a`;
  expect(await migrate(sql, build)).toEqual(["0002_step_2"]);
  expect(await indexes(sql, "a")).toEqual([{ name: "a_id", valid: true }]);
});

async function indexes(sql: Sql, table: string): Promise<{ name: string; valid: boolean }[]> {
  const rows = await sql<{ name: string; valid: boolean }[]>`
    SELECT indexrelid::regclass::text AS name, indisvalid AS valid FROM pg_index WHERE indrelid = ${table}::regclass`;
  return [...rows];
}

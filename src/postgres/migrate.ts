import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sql } from "postgres";
import { grantRights } from "./rights.ts";

/** A numbered step of the schema. Once released it is never edited, and it is safe while the version before it still runs. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  /** SHA-256 of `sql`, hexadecimal. */
  readonly checksum: string;
}

/** Where they are in the source, which the published package has for them: what is compiled has the same depth. */
const FOLDER = new URL("../../src/postgres/migrations/", import.meta.url);
const FILE = /^(\d{4})_(\w+)\.sql$/;

/**
 * How a migration begins that is no transaction, since `CREATE INDEX CONCURRENTLY` cannot be in one. Its statements run one by
 * one, each ended by a semicolon at the end of a line. Where one fails the next run begins again with the first, so each must
 * be one that may be repeated: what it makes is dropped before, for an index that was not finished is there but of no use.
 */
const ONE_BY_ONE = "-- one by one\n";

/** Key of the advisory lock under which the schema is changed: "keyhold" as a number on a telephone. */
const LOCK = 5394653;

/** Milliseconds. */
const LOCK_POLL = 50;

/** The migrations of this version, in order. */
export async function readMigrations(folder: URL = FOLDER): Promise<Migration[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith(".sql")).sort();
  return Promise.all(files.map((file) => readOne(folder, file)));
}

async function readOne(folder: URL, file: string): Promise<Migration> {
  const [, version, name] = FILE.exec(file) ?? [];
  if (version === undefined || name === undefined) throw new Error(`migration ${file}: not named NNNN_name.sql`);
  const sql = await readFile(new URL(file, folder), "utf8");
  return { version: Number(version), name, sql, checksum: createHash("sha256").update(sql).digest("hex") };
}

/**
 * Brings the schema up to these migrations and answers the names of those applied now; then gives `serverRole`, if there is one,
 * its rights. Any number of servers may do this at once: an advisory lock lets one work while the others wait. A schema that is
 * ahead of this version is left as it is. `sql` has one connection, which holds the lock, and no limit to the time of a statement.
 */
export async function migrate(
  sql: Sql,
  migrations: readonly Migration[],
  serverRole: string | null = null,
): Promise<string[]> {
  await lock(sql);
  try {
    const done = await applyPending(sql, migrations);
    if (serverRole !== null) await grantRights(sql, serverRole);
    return done;
  } finally {
    await sql`SELECT pg_advisory_unlock(${LOCK})`.catch(() => undefined);
  }
}

/**
 * Asks again and again, for a statement that waits is a transaction that is open: an index that is built concurrently waits for
 * all of them to end, and each would wait for the other (PostgreSQL docs, "CREATE INDEX", "Building Indexes Concurrently").
 */
async function lock(sql: Sql): Promise<void> {
  for (;;) {
    const [row] = await sql<{ mine: boolean }[]>`SELECT pg_try_advisory_lock(${LOCK}) AS mine`;
    if (row?.mine === true) return;
    await sleep(LOCK_POLL);
  }
}

async function applyPending(sql: Sql, migrations: readonly Migration[]): Promise<string[]> {
  await sql`
    CREATE TABLE IF NOT EXISTS schema_migrations (
      version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, apply_time timestamptz NOT NULL DEFAULT now()
    )`;
  const done: string[] = [];
  for (const migration of toApply(await readApplied(sql), migrations)) done.push(await applyOne(sql, migration));
  return done;
}

/** Names of the migrations that the schema lacks: all of them if there is none. It takes no right but to read. */
export async function findPending(sql: Sql, migrations: readonly Migration[]): Promise<string[]> {
  const [row] = await sql<{ is_there: boolean }[]>`SELECT to_regclass('schema_migrations') IS NOT NULL AS is_there`;
  const applied = row?.is_there === true ? await readApplied(sql) : new Map();
  return [...toApply(applied, migrations)].map(nameOf);
}

async function readApplied(sql: Sql): Promise<ReadonlyMap<number, string>> {
  const rows = await sql<{ version: number; checksum: string }[]>`SELECT version, checksum FROM schema_migrations`;
  return new Map(rows.map((row) => [row.version, row.checksum]));
}

/** Those that were not applied, each when those before it have been looked at. */
function* toApply(checksums: ReadonlyMap<number, string>, migrations: readonly Migration[]): Generator<Migration> {
  for (const migration of migrations) {
    const checksum = checksums.get(migration.version);
    if (checksum === undefined) yield migration;
    else if (checksum !== migration.checksum)
      throw new Error(`migration ${migration.name} was edited after it was applied`);
  }
}

/** The migration and its entry go as one simple query, which is one transaction (PostgreSQL docs, 54.2.2.1): all or nothing. */
async function applyOne(sql: Sql, migration: Migration): Promise<string> {
  const { version, name, sql: change, checksum } = migration;
  const entry = `INSERT INTO schema_migrations (version, name, checksum) VALUES (${version}, '${name}', '${checksum}')`;
  const queries = change.startsWith(ONE_BY_ONE) ? [...statements(change), entry] : [`${change}\n;\n${entry}`];
  for (const query of queries) await sql.unsafe(query);
  return nameOf(migration);
}

function nameOf({ version, name }: Migration): string {
  return `${String(version).padStart(4, "0")}_${name}`;
}

function statements(text: string): string[] {
  return text.split(/;[ \t]*(?:\n|$)/).filter((statement) => statement.trim() !== "");
}

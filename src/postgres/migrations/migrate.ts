import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sql } from "postgres";
import { grantRights } from "./rights.ts";

/** A numbered migration. It is never edited after its release, and is safe while the previous version still runs. */
export type Migration = Awaited<ReturnType<typeof readOne>>;

/** The published package contains this folder of the source; compiled code has the same depth. */
const FOLDER = new URL("../../../src/postgres/migrations/", import.meta.url);
const FILE = /^(\d{4})_(\w+)\.sql$/;

/**
 * First line of a migration that runs outside a transaction, for `CREATE INDEX CONCURRENTLY`. Its statements, each ended by a semicolon
 * at the end of a line, run one by one. After a failure the next run starts with the first, so each must be idempotent: it first drops
 * what it creates, because an unfinished index exists but is invalid.
 */
const ONE_BY_ONE = "-- one by one\n";

/** Key of the advisory lock for migrations: "keyhold" on a telephone keypad. */
const LOCK = 5394653;

/** Milliseconds. */
const LOCK_POLL = 50;

/** Returns the migrations of this version, in order. */
export async function readMigrations(folder: URL = FOLDER): Promise<Migration[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith(".sql")).sort();
  return Promise.all(files.map((file) => readOne(folder, file)));
}

/** Returns a migration with the SHA-256 of its text, hexadecimal. */
async function readOne(folder: URL, file: string) {
  const [, version, name] = FILE.exec(file) ?? [];
  if (version === undefined || name === undefined) throw new Error(`migration ${file}: not named NNNN_name.sql`);
  const sql = await readFile(new URL(file, folder), "utf8");
  return { version: Number(version), name, sql, checksum: createHash("sha256").update(sql).digest("hex") };
}

/**
 * Applies pending migrations, grants `serverRole` its rights if given, and returns the names of the migrations that were applied. Safe to
 * call concurrently from any number of servers: an advisory lock serializes them. A schema that is newer than this version is left
 * unchanged. `sql` must have one connection, which holds the lock, and no statement timeout.
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
 * Polls, because a statement that waits for the lock is an open transaction: a concurrent index build waits for all transactions to
 * end, so the two would deadlock (PostgreSQL docs, "CREATE INDEX", "Building Indexes Concurrently").
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

/** Returns the names of the pending migrations. Needs only the right to read. */
export async function findPending(sql: Sql, migrations: readonly Migration[]): Promise<string[]> {
  const [row] = await sql<{ isThere: boolean }[]>`SELECT to_regclass('schema_migrations') IS NOT NULL AS "isThere"`;
  const applied = row?.isThere === true ? await readApplied(sql) : new Map();
  return [...toApply(applied, migrations)].map(nameOf);
}

async function readApplied(sql: Sql): Promise<ReadonlyMap<number, string>> {
  const rows = await sql<{ version: number; checksum: string }[]>`SELECT version, checksum FROM schema_migrations`;
  return new Map(rows.map((row) => [row.version, row.checksum]));
}

/** Yields the migrations that were not applied. Throws if one was edited after it was applied. */
function* toApply(checksums: ReadonlyMap<number, string>, migrations: readonly Migration[]): Generator<Migration> {
  for (const migration of migrations) {
    const checksum = checksums.get(migration.version);
    if (checksum === undefined) yield migration;
    else if (checksum !== migration.checksum)
      throw new Error(`migration ${migration.name} was edited after it was applied`);
  }
}

/** Sends the migration and its entry as one simple query, which is one transaction (PostgreSQL docs, 54.2.2.1). */
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

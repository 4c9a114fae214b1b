import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parse } from "csv-parse/sync";
import type { Sql } from "postgres";
import { readPage } from "../../docs/blocks.ts";
import { newFile } from "./import-command.ts";

const FOLDER = resolve(import.meta.dirname, "tables");

type Row = Readonly<Record<string, string>>;

export const fileOf = (name: string) => resolve(FOLDER, name);
export const readTable = (name: string): Row[] => parse(readFileSync(fileOf(`${name}.csv`)), { columns: true });
export const readKeys = (name: string) =>
  readFileSync(fileOf(`${name}.keys`), "utf8")
    .trimEnd()
    .split("\n");

/** Returns the only query of docs/moving.md on a table. */
function queryOn(table: RegExp): string {
  const queries = readPage("docs/moving.md").blocks.filter(({ role, text }) => role === "export" && table.test(text));
  const [query] = queries;
  if (query === undefined || queries.length > 1)
    throw new Error(`docs/moving.md has ${queries.length} queries on ${table}`);
  return query.text;
}

/** Runs the query of docs/moving.md on tables in PostgreSQL, as `psql --csv` would. Resolves to the CSV file. */
async function exportFrom(sql: Sql, table: RegExp, create: string, rows: Readonly<Record<string, readonly Row[]>>) {
  const booleans: Readonly<Record<string, boolean>> = { true: true, false: false, t: true, f: false };
  await sql.unsafe(create);
  for (const [name, records] of Object.entries(rows)) {
    for (const record of records) {
      const given = Object.entries(record).filter(([, value]) => value !== "");
      const present = Object.fromEntries(given.map(([name, value]) => [name, booleans[value] ?? value]));
      await sql`INSERT INTO ${sql(name)} ${sql(present)}`;
    }
  }
  const result = await sql.unsafe(queryOn(table));
  const columns = result.columns.map(({ name }) => name);
  const cell = (value: unknown) => (value === null ? "" : `"${String(value).replaceAll('"', '""')}"`);
  const lines = [columns, ...result.map((record) => columns.map((name) => record[name]))];
  const file = newFile("csv");
  await writeFile(file, lines.map((cells) => `${cells.map(cell).join(",")}\n`).join(""));
  return file;
}

/** Rows that must not be exported: a holder whose key is not valid any more must not be accepted again. */
const PAST = "2024-01-02 03:04:05+00";

/** The tables of Unkey's `schema.sql` that the query reads, in SQLite, which reads what it uses of MySQL's syntax. */
export async function exportUnkey(): Promise<string> {
  const database = new DatabaseSync(":memory:");
  database.exec(`
    CREATE TABLE \`keys\` (id TEXT, hash TEXT, start TEXT, name TEXT, owner_id TEXT, identity_id TEXT, expires TEXT, deleted_at_m INTEGER,
      enabled INTEGER NOT NULL DEFAULT 1, pending_migration_id TEXT);
    CREATE TABLE identities (id TEXT, external_id TEXT);
    CREATE TABLE permissions (id TEXT, slug TEXT);
    CREATE TABLE keys_permissions (key_id TEXT, permission_id TEXT);
    INSERT INTO \`keys\` (id, hash, deleted_at_m) VALUES ('deleted', 'x', 1);
    INSERT INTO \`keys\` (id, hash, enabled) VALUES ('disabled', 'x', 0);
    INSERT INTO \`keys\` (id, hash, expires) VALUES ('expired', 'x', '2024-01-02 03:04:05.678');
    INSERT INTO \`keys\` (id, hash, pending_migration_id) VALUES ('foreign', 'x', 'migration')`);
  const insert = (table: string, row: Readonly<Record<string, string | null>>) =>
    database
      .prepare(`INSERT INTO \`${table}\` (${Object.keys(row)}) VALUES (${Object.keys(row).map(() => "?")})`)
      .run(...Object.values(row));
  for (const [index, { id = "", hash = "", start = "", name = "", external_id = "", permissions = "" }] of readTable(
    "unkey",
  ).entries()) {
    const expires = index % 3 === 0 ? "2034-05-06 07:08:09.123" : null;
    insert("keys", { id, hash, start, name, identity_id: `id_${external_id}`, expires });
    if (index < 7) insert("identities", { id: `id_${external_id}`, external_id });
    for (const slug of permissions.split(" ").filter(Boolean)) {
      insert("permissions", { id: `${id}_${slug}`, slug });
      insert("keys_permissions", { key_id: id, permission_id: `${id}_${slug}` });
    }
  }
  const rows = database.prepare(queryOn(/FROM `keys`/)).all();
  const file = newFile("jsonl");
  await writeFile(file, rows.map((row) => `${Object.values(row)[0]}\n`).join(""));
  return file;
}

/** The table of better-auth, with the columns that the plugin has written. */
export function exportBetterAuth(sql: Sql): Promise<string> {
  const rows = readTable("better-auth");
  const [first = {}] = rows;
  const types: Record<string, string> = { enabled: "boolean", expiresAt: "timestamptz" };
  const columns = Object.keys(first).map((name) => `"${name}" ${types[name] ?? "text"}`);
  const expired = { ...first, id: "expired", expiresAt: PAST };
  const disabled = { ...first, id: "disabled", enabled: "false" };
  return exportFrom(sql, /FROM apikey/, `CREATE TABLE apikey (${columns})`, { apikey: [...rows, expired, disabled] });
}

/** The table of Django REST framework API Key, with rows of both of its hashes. */
export function exportDjango(sql: Sql): Promise<string> {
  const name = "rest_framework_api_key_apikey";
  const create = `CREATE TABLE ${name} (id varchar(150) PRIMARY KEY, prefix varchar(8) UNIQUE, hashed_key varchar(150), created timestamptz,
    name varchar(50), revoked boolean, expiry_date timestamptz)`;
  const rows = readTable("pbkdf2");
  const expired = { ...rows[0], id: "expired", prefix: "expired", expiry_date: PAST };
  const revoked = { ...rows[0], id: "revoked", prefix: "revoked", revoked: "t" };
  return exportFrom(sql, /FROM rest_framework/, create, { [name]: [...rows, expired, revoked] });
}

/** The tables of Kong with these keys. */
export function exportKong(sql: Sql, keys: readonly string[]): Promise<string> {
  const create = `
    CREATE TABLE consumers (id uuid PRIMARY KEY, username text UNIQUE, custom_id text UNIQUE);
    CREATE TABLE keyauth_credentials (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), consumer_id uuid REFERENCES consumers, key text UNIQUE,
      tags text[], ttl timestamptz)`;
  const ids = keys.map((_, index) => `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`);
  const consumers = ids.map((id, index) => ({ id, ...(index % 2 === 0 ? { username: `kong ${index}` } : {}) }));
  const credentials = keys.map((key, index) => ({
    consumer_id: ids[index] ?? "",
    key,
    ...(index === 0 ? { tags: "{read,write}", ttl: "2034-05-06 07:08:09+00" } : {}),
  }));
  const expired = { consumer_id: ids[0] ?? "", key: "expired", ttl: PAST };
  return exportFrom(sql, /FROM keyauth/, create, { consumers, keyauth_credentials: [...credentials, expired] });
}

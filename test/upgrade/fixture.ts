import { readFile } from "node:fs/promises";
import type { Sql } from "postgres";
import type { Json } from "../support/rest.ts";

/** The database of release 0.1 that `make-fixture.ts` has made, and what that release said of each credential in it. */
export interface Fixture {
  readonly comment: string;
  /** The commit that made it. */
  readonly commit: string;
  /** When it was made, RFC 3339: tokens have to be verified by a clock that shows this time. */
  readonly time: string;
  /** The current root secret and the retired ones. */
  readonly rootSecrets: readonly [string, ...string[]];
  readonly credentials: readonly FixtureCredential[];
  /** Requests that were answered, with the `key_id` that they made. */
  readonly requests: readonly { readonly path: string; readonly body: Json; readonly keyId: string }[];
  /** Admin tokens; the last one is revoked. */
  readonly adminTokens: readonly [string, string];
  readonly jwks: Json;
  /** A page token of issued keys, and the page after it by key id. */
  readonly page: { readonly token: string; readonly keyIds: readonly string[] };
  /** By table, its rows as `to_jsonb` writes them. */
  readonly tables: Readonly<Record<string, readonly Json[]>>;
}

export interface FixtureCredential {
  /** Such as `JWT of a revoked key`. */
  readonly name: string;
  readonly credential: string;
  /** The answers of release 0.1. */
  readonly rest: Json;
  readonly grpc: Json;
}

export const FIXTURE_FILE = new URL("release-0.1.json", import.meta.url);

/** Tables with their keys. Leases in `nodes` end with their nodes. */
const TABLES = { api_keys: "key_id", signing_keys: "kid", schema_migrations: "version" };

export async function readFixture(): Promise<Fixture> {
  return JSON.parse(await readFile(FIXTURE_FILE, "utf8"));
}

export async function dumpTables(sql: Sql): Promise<Fixture["tables"]> {
  const tables: Record<string, Json[]> = {};
  for (const [table, key] of Object.entries(TABLES)) {
    const rows = await sql<{ row: Json }[]>`SELECT to_jsonb(t) AS row FROM ${sql(table)} AS t ORDER BY ${sql(key)}`;
    tables[table] = rows.map(({ row }) => row);
  }
  return tables;
}

/** Replaces the rows of a database that has the schema of release 0.1. */
export async function restoreTables(sql: Sql, tables: Fixture["tables"]): Promise<void> {
  for (const [table, rows] of Object.entries(tables)) {
    await sql`TRUNCATE ${sql(table)}`;
    await sql`INSERT INTO ${sql(table)} SELECT * FROM jsonb_populate_recordset(NULL::${sql(table)}, ${sql.json([...rows])})`;
  }
}

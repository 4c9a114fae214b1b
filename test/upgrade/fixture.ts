import { readFile } from "node:fs/promises";
import type { Sql } from "postgres";
import type { Json } from "../support/rest.ts";

/** A database of release 0.1, created by `make-fixture.ts`, with that release's verdict on each credential. */
export interface Fixture {
  readonly comment: string;
  /** The commit of the release that created it. */
  readonly commit: string;
  /** Time of its creation, RFC 3339. Tokens must be verified with a clock that shows this time. */
  readonly time: string;
  /** The current root secret and the retired ones. */
  readonly rootSecrets: readonly [string, ...string[]];
  readonly credentials: readonly FixtureCredential[];
  /** Executed requests, with the `key_id` of their keys. */
  readonly requests: readonly { readonly path: string; readonly body: Json; readonly keyId: string }[];
  /** Admin tokens; the last one is revoked. */
  readonly adminTokens: readonly [string, string];
  readonly jwks: Json;
  /** A page token of issued keys, and the ids of the keys on its page. */
  readonly page: { readonly token: string; readonly keyIds: readonly string[] };
  /** The rows of each table in the format of `to_jsonb`, without nulls. */
  readonly tables: Readonly<Record<string, readonly Json[]>>;
}

export interface FixtureCredential {
  /** Such as `JWT of a revoked key`. */
  readonly name: string;
  readonly credential: string;
  /** The response of release 0.1 over REST and over gRPC. */
  readonly verdict: Json;
}

export const FIXTURE_FILE = new URL("release-0.1.json", import.meta.url);

/** Tables with their primary keys. Leases in `nodes` are excluded, since they end with their nodes. */
const TABLES = { api_keys: "key_id", signing_keys: "kid", schema_migrations: "version" };

export async function readFixture(): Promise<Fixture> {
  return JSON.parse(await readFile(FIXTURE_FILE, "utf8"));
}

export async function dumpTables(sql: Sql): Promise<Fixture["tables"]> {
  const tables: Record<string, Json[]> = {};
  for (const [table, key] of Object.entries(TABLES)) {
    const rows = await sql<{ row: Json }[]>`
      SELECT jsonb_strip_nulls(to_jsonb(t)) AS row FROM ${sql(table)} AS t ORDER BY ${sql(key)}`;
    tables[table] = rows.map(({ row }) => row);
  }
  return tables;
}

/** Replaces all rows of a database with the schema of release 0.1. */
export async function restoreTables(sql: Sql, tables: Fixture["tables"]): Promise<void> {
  for (const [table, rows] of Object.entries(tables)) {
    await sql`TRUNCATE ${sql(table)}`;
    await sql`INSERT INTO ${sql(table)} SELECT * FROM jsonb_populate_recordset(NULL::${sql(table)}, ${sql.json([...rows])})`;
  }
}

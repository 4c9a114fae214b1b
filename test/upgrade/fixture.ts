import { readFile } from "node:fs/promises";
import type { Sql } from "postgres";
import type { Json } from "../support/rest.ts";

/** A database of release 0.1, which is never made again, with that release's verdict on each credential. */
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

export async function readFixture(): Promise<Fixture> {
  return JSON.parse(await readFile(FIXTURE_FILE, "utf8"));
}

/** Replaces all rows of a database with the schema of release 0.1. */
export async function restoreTables(sql: Sql, tables: Fixture["tables"]): Promise<void> {
  for (const [table, rows] of Object.entries(tables)) {
    await sql`TRUNCATE ${sql(table)}`;
    await sql`INSERT INTO ${sql(table)} SELECT * FROM jsonb_populate_recordset(NULL::${sql(table)}, ${sql.json([...rows])})`;
  }
}

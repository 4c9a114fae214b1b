import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import postgres from "postgres";
import { inject } from "vitest";
import { bringUpToDate } from "../../src/postgres/migrations/schema.ts";

export interface TestDatabase {
  /** URL of the database with the privileges of a server, which `keyhold migrate` grants. Any client can parse it. */
  readonly url: string;
  /** URL as the owner of the database and its schema, who is not a superuser and has all privileges of the servers' role. */
  readonly ownerUrl: string;
  /** Terminates all connections and removes the database and its roles. */
  drop(): Promise<void>;
}

/** Creates a database with the schema for a suite, on the server that all suites of a run share (`global-setup.ts`). */
export async function createTestDatabase(): Promise<TestDatabase> {
  const database = await createEmptyDatabase();
  await bringUpToDate(database.ownerUrl, userOf(database.url));
  return database;
}

/** Creates a database without a schema, in which the servers' role has no privileges yet. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  const admin = await superuserUrl();
  const name = `test_${randomBytes(6).toString("hex")}`;
  const server = `${name}_server`;
  const password = randomBytes(16).toString("hex");
  await run(admin, [
    `CREATE ROLE ${name} LOGIN PASSWORD '${password}'`,
    // The owner is a member of the servers' role, so that tests may terminate its connections and read its statistics.
    `CREATE ROLE ${server} LOGIN PASSWORD '${password}' ROLE ${name}`,
    `CREATE DATABASE ${name} OWNER ${name}`,
  ]);
  return {
    url: urlOf(admin, name, server, password),
    ownerUrl: urlOf(admin, name, name, password),
    drop: () => run(admin, [`DROP DATABASE ${name} WITH (FORCE)`, `DROP ROLE ${server}`, `DROP ROLE ${name}`]),
  };
}

/** Returns the role in a URL. */
export function userOf(url: string): string {
  return new URL(url).username;
}

function urlOf(admin: string, database: string, user: string, password: string): string {
  const url = new URL(admin);
  url.username = user;
  url.password = password;
  url.pathname = `/${database}`;
  return url.href;
}

/** Runs statements as a superuser on the server that all suites share. Returns its URL. */
export async function runAsSuperuser(statements: readonly string[]): Promise<string> {
  const url = await superuserUrl();
  await run(url, statements);
  return url;
}

async function run(url: string, statements: readonly string[]): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    for (const statement of statements) await sql.unsafe(statement);
  } finally {
    await sql.end();
  }
}

async function superuserUrl(): Promise<string> {
  const source = inject("testPostgres");
  if ("url" in source) return source.url;
  const answer = JSON.parse(await text(connect(source.socket))) as { url: string } | { error: string };
  if ("error" in answer) throw new Error(answer.error);
  return answer.url;
}

import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import postgres from "postgres";
import { inject } from "vitest";
import { bringUpToDate } from "../../src/postgres/schema.ts";

export interface TestDatabase {
  /** Of the database, as a server connects: with the rights that `keyhold migrate` grants. Any client understands it. */
  readonly url: string;
  /** As the owner of the database and its schema, who is no superuser and may do all that the server's role may. */
  readonly ownerUrl: string;
  /** Cuts off whoever is still connected, and removes the database and its roles. */
  drop(): Promise<void>;
}

/** A new database of its own for a suite, with the schema, on the server that all suites of a run share (`global-setup.ts`). */
export async function createTestDatabase(): Promise<TestDatabase> {
  const database = await createEmptyDatabase();
  await bringUpToDate(database.ownerUrl, userOf(database.url));
  return database;
}

/** The same without a schema, so that the server's role may do nothing in it yet. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  const admin = await superuserUrl();
  const name = `test_${randomBytes(6).toString("hex")}`;
  const server = `${name}_server`;
  const password = randomBytes(16).toString("hex");
  await run(admin, [
    `CREATE ROLE ${name} LOGIN PASSWORD '${password}'`,
    // The owner is a member of the server's role, so that tests may end its connections and read its statistics.
    `CREATE ROLE ${server} LOGIN PASSWORD '${password}' ROLE ${name}`,
    `CREATE DATABASE ${name} OWNER ${name}`,
  ]);
  return {
    url: urlOf(admin, name, server, password),
    ownerUrl: urlOf(admin, name, name, password),
    drop: () => run(admin, [`DROP DATABASE ${name} WITH (FORCE)`, `DROP ROLE ${server}`, `DROP ROLE ${name}`]),
  };
}

/** The role in a URL. */
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

/** Runs statements on the server that all suites share, as one who may do everything. Answers its URL. */
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

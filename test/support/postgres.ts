import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import postgres from "postgres";
import { inject } from "vitest";

export interface TestDatabase {
  /** Of the database, as its owner, who is no superuser. Any client understands it. */
  readonly url: string;
  /** Cuts off whoever is still connected, and removes the database and its owner. */
  drop(): Promise<void>;
}

/** A new, empty database of its own for a suite, on the server that all suites of a run share (`global-setup.ts`). */
export async function createTestDatabase(): Promise<TestDatabase> {
  const admin = await superuserUrl();
  const name = `test_${randomBytes(6).toString("hex")}`;
  const password = randomBytes(16).toString("hex");
  await run(admin, [`CREATE ROLE ${name} LOGIN PASSWORD '${password}'`, `CREATE DATABASE ${name} OWNER ${name}`]);
  return {
    url: urlOf(admin, name, password),
    drop: () => run(admin, [`DROP DATABASE ${name} WITH (FORCE)`, `DROP ROLE ${name}`]),
  };
}

function urlOf(admin: string, name: string, password: string): string {
  const url = new URL(admin);
  url.username = name;
  url.password = password;
  url.pathname = `/${name}`;
  return url.href;
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

import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { inject } from "vitest";
import { adoptCopy, runOn, urlOf } from "./template-database.ts";

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
  const { url, template } = await testPostgres();
  const { database, name, server } = await createDatabase(url, template);
  await adoptCopy(url, { template, name, server });
  return database;
}

/** Creates a database without a schema, in which the servers' role has no privileges yet. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  const { url } = await testPostgres();
  return (await createDatabase(url, "template1")).database;
}

async function createDatabase(admin: string, template: string) {
  const name = `test_${randomBytes(6).toString("hex")}`;
  const server = `${name}_server`;
  const password = randomBytes(16).toString("hex");
  await runOn(admin, [
    `CREATE ROLE ${name} LOGIN PASSWORD '${password}'`,
    // The owner is a member of the servers' role, so that tests may terminate its connections and read its statistics.
    `CREATE ROLE ${server} LOGIN PASSWORD '${password}' ROLE ${name}`,
    `CREATE DATABASE ${name} OWNER ${name} TEMPLATE ${template}`,
  ]);
  const drop = [`DROP DATABASE ${name} WITH (FORCE)`, `DROP ROLE ${server}`, `DROP ROLE ${name}`];
  const database = {
    url: urlOf(admin, name, { user: server, password }),
    ownerUrl: urlOf(admin, name, { user: name, password }),
    drop: () => runOn(admin, drop),
  };
  return { database, name, server };
}

/** Returns the role in a URL. */
export function userOf(url: string): string {
  return new URL(url).username;
}

/** Runs statements as a superuser on the server that all suites share. Returns its URL. */
export async function runAsSuperuser(statements: readonly string[]): Promise<string> {
  const { url } = await testPostgres();
  await runOn(url, statements);
  return url;
}

async function testPostgres(): Promise<{ readonly url: string; readonly template: string }> {
  const answer = JSON.parse(await text(connect(inject("testPostgres"))));
  if ("error" in answer) throw new Error(answer.error);
  return answer;
}

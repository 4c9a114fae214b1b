import { randomBytes } from "node:crypto";
import postgres, { type Sql } from "postgres";
import { grantRights } from "../../src/postgres/migrations/rights.ts";
import { bringUpToDate } from "../../src/postgres/migrations/schema.ts";

/**
 * Creates a database with the schema. A copy of it takes a third of the CPU time of a new database with all migrations. Returns its name,
 * which is also that of the role that owns its objects.
 */
export async function createTemplate(superuserUrl: string): Promise<string> {
  const name = `template_${randomBytes(6).toString("hex")}`;
  const password = randomBytes(16).toString("hex");
  await runOn(superuserUrl, [
    `CREATE ROLE ${name} LOGIN PASSWORD '${password}'`,
    `CREATE DATABASE ${name} OWNER ${name}`,
  ]);
  await bringUpToDate(urlOf(superuserUrl, name, { user: name, password }), null);
  // REASSIGN OWNED in a copy would give the template itself to the owner of the copy.
  await runOn(superuserUrl, [`ALTER DATABASE ${name} OWNER TO CURRENT_USER`]);
  return name;
}

export function dropTemplate(superuserUrl: string, template: string): Promise<void> {
  return runOn(superuserUrl, [`DROP DATABASE ${template}`, `DROP ROLE ${template}`]);
}

/** Gives a copy of the template to its owner, with the state and the privileges that migrations with `--grant-to` leave. */
export async function adoptCopy(
  superuserUrl: string,
  { template, name, server }: Readonly<Record<"template" | "name" | "server", string>>,
): Promise<void> {
  await withSql(urlOf(superuserUrl, name), async (sql) => {
    await sql.unsafe(`
      REASSIGN OWNED BY ${template} TO ${name};
      SET ROLE ${name};
      -- What migrations choose for each database.
      UPDATE audit_tree SET origin = DEFAULT, record_time = DEFAULT;
      UPDATE expiry_sweeps SET expire_time = now();
      UPDATE usage_log SET first_day = (now() AT TIME ZONE 'UTC')::date`);
    await grantRights(sql, server);
  });
}

/** Returns the URL of another database, by default as the same user. */
export function urlOf(
  superuserUrl: string,
  database: string,
  login?: Readonly<Record<"user" | "password", string>>,
): string {
  const url = new URL(superuserUrl);
  url.pathname = `/${database}`;
  if (login !== undefined) {
    url.username = login.user;
    url.password = login.password;
  }
  return url.href;
}

/** Runs each statement outside a transaction. */
export function runOn(url: string, statements: readonly string[]): Promise<void> {
  return withSql(url, async (sql) => {
    for (const statement of statements) await sql.unsafe(statement);
  });
}

async function withSql(url: string, work: (sql: Sql) => Promise<void>): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await work(sql);
  } finally {
    await sql.end();
  }
}

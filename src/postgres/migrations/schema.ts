import type { Sql } from "postgres";
import { KeyholdError } from "../../domain/errors.ts";
import { parseConnectionUrl } from "../connection/connection-url.ts";
import { codeOf } from "../connection/errors.ts";
import { firstRow } from "../connection/first-row.ts";
import { withPrimary } from "../connection/primary.ts";
import { findPending, migrate, readMigrations } from "./migrate.ts";
import { mayMigrate, readRights } from "./rights.ts";

const INSUFFICIENT_PRIVILEGE = "42501";

/**
 * Migrates the schema as its owner, grants the role of the servers its rights, and returns the names of the applied migrations.
 *
 * @throws KeyholdError `DATABASE_UNAVAILABLE` with a remedy when the user of the URL may not migrate.
 */
export function bringUpToDate(url: string, role: string | null): Promise<string[]> {
  return withMigrator(url, async (sql) => migrate(sql, await readMigrations(), role));
}

/**
 * Checks, for a server, that the schema is current and that the role has its rights. Migrates if the role owns the schema. Returns the
 * names of the applied migrations.
 *
 * @throws KeyholdError `DATABASE_UNAVAILABLE` with a remedy when the owner of the schema must act first.
 */
export function openSchema(url: string): Promise<string[]> {
  return withMigrator(url, async (sql) => {
    const migrations = await readMigrations();
    const pending = await findPending(sql, migrations);
    if (pending.length === 0) return requireRights(sql);
    if (await mayMigrate(sql)) return migrate(sql, migrations);
    const { role } = firstRow(await sql<{ role: string }[]>`SELECT current_user AS role`);
    throw notReady(`the database lacks ${pending.join(", ")}, and role ${role} cannot migrate it`);
  });
}

async function requireRights(sql: Sql): Promise<string[]> {
  const { role, missing } = await readRights(sql);
  if (missing.length > 0) throw notReady(`role ${role} lacks privileges ${missing.join(", ")}`);
  return [];
}

/**
 * Migrates a database as whose owner (`url`) and superuser this process may connect, and grants the rights of the servers. Creates their
 * role if an older release did not.
 */
export function prepareOwned({
  url,
  superuserUrl,
  serverRole,
}: Readonly<Record<"url" | "superuserUrl" | "serverRole", string>>): Promise<string[]> {
  return withMigrator(url, async (sql) => {
    const roles = await sql`SELECT FROM pg_roles WHERE rolname = ${serverRole}`;
    if (roles.length === 0) await withMigrator(superuserUrl, (superuser) => createRole(superuser, serverRole));
    return migrate(sql, await readMigrations(), serverRole);
  });
}

/** Another process may create the role at the same time. */
async function createRole(sql: Sql, role: string): Promise<void> {
  await sql`CREATE ROLE ${sql(role)} LOGIN`.catch((error: unknown) => {
    if (!["42710", "23505"].includes(codeOf(error))) throw error;
  });
}

/** Uses a separate connection without a statement timeout. Translates SQLSTATE insufficient_privilege, which connecting may raise too. */
function withMigrator<T>(url: string, work: (sql: Sql) => PromiseLike<T>): Promise<T> {
  return withPrimary({ url, statementTimeout: 0, prepare: false }, work).catch((error: Error) => {
    if (codeOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    throw notReady(`role ${parseConnectionUrl(url).user} lacks a privilege (${error.message})`);
  });
}

function notReady(why: string): KeyholdError {
  return new KeyholdError(
    "DATABASE_UNAVAILABLE",
    `${why}: set KEYHOLD_DATABASE_MIGRATE_URL to the URL of the schema owner, and run \`keyhold migrate\``,
  );
}

import type { Sql } from "postgres";
import { invalidArgument } from "../domain/errors.ts";

/**
 * All that a server may do: what its statements need, and no more (`test/postgres/rights.test.ts` takes away one after the other).
 * Trigger functions need no right to be called (PostgreSQL docs, CREATE TRIGGER). A release may add a right and takes none away,
 * since servers of the release before run on.
 */
export const RIGHTS: Readonly<Record<string, readonly string[]>> = {
  api_keys: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  signing_keys: ["SELECT", "INSERT", "UPDATE"],
  nodes: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  accepted_databases: ["SELECT", "INSERT"],
  used_root_secrets: ["SELECT", "INSERT"],
  schema_migrations: ["SELECT"],
  // Written by triggers, which run as the owner.
  raw_key_digests: ["SELECT"],
};

/** What a role has in the database, and should have or not. */
export interface RoleRights {
  readonly role: string;
  readonly isSuperuser: boolean;
  /** Owns the tables, by itself or as a member of a role, and so may change them. */
  readonly isOwner: boolean;
  /** May make tables and functions in the schema. */
  readonly mayCreate: boolean;
  /** Such as `INSERT on nodes`. */
  readonly missing: readonly string[];
  /** Rights on the tables that no server needs. Empty for an owner, who has them all. */
  readonly needless: readonly string[];
}

/** All rights that a table has (PostgreSQL docs, 5.8), but for MAINTAIN, which came with 17. */
const ALL_RIGHTS = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"];

/** Gives the role of the servers its rights. To be called under the lock of the migrations, when the tables are there. */
export async function grantRights(sql: Sql, role: string): Promise<void> {
  const [place] = await sql<Place[]>`
    SELECT current_schema() AS schema, current_database() AS database,
      EXISTS (SELECT FROM pg_roles WHERE rolname = ${role}) AS has_role,
      (SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = current_schema()) AS owns_schema,
      (SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()) AS owns_database`;
  if (place === undefined || !place.has_role)
    throw invalidArgument("--grant-to", `there is no role ${role}: make it first, with CREATE ROLE … LOGIN PASSWORD …`);
  await sql.unsafe(grants(place, quoted(role)).join(";\n"));
}

interface Place {
  readonly schema: string;
  readonly database: string;
  readonly has_role: boolean;
  readonly owns_schema: boolean;
  readonly owns_database: boolean;
}

/** Before PostgreSQL 15, everyone may create in the schema `public`. What is another's to give is left to them. */
function grants({ schema, database, owns_schema, owns_database }: Place, role: string): string[] {
  const tables = Object.entries(RIGHTS).map(
    ([table, rights]) => `GRANT ${rights.join(", ")} ON ${quoted(schema)}.${table} TO ${role}`,
  );
  const ofSchema = [
    `REVOKE CREATE ON SCHEMA ${quoted(schema)} FROM PUBLIC`,
    `GRANT USAGE ON SCHEMA ${quoted(schema)} TO ${role}`,
  ];
  const ofDatabase = `GRANT CONNECT ON DATABASE ${quoted(database)} TO ${role}`;
  return [...(owns_schema ? ofSchema : []), ...(owns_database ? [ofDatabase] : []), ...tables];
}

/** Whether the current role may make the schema, or change it: the owner of what is there, or one who may begin. */
export async function mayMigrate(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ may: boolean }[]>`
    SELECT coalesce(
      (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('schema_migrations')),
      has_schema_privilege(current_schema(), 'CREATE'), false) AS may`;
  return row?.may ?? false;
}

/** What the current role has. The tables must be there. */
export async function readRights(sql: Sql): Promise<RoleRights> {
  const [row] = await sql<{ role: string; superuser: boolean; owner: boolean; creates: boolean }[]>`
    SELECT current_user AS role, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS superuser,
      (SELECT bool_or(pg_has_role(relowner, 'USAGE')) FROM pg_class
       JOIN unnest(${tables()}::text[]) AS name ON oid = name::regclass) AS owner,
      has_schema_privilege(current_schema(), 'CREATE') AS creates`;
  const held = await sql<{ name: string; is_held: boolean }[]>`
    SELECT "right" || ' on ' || name AS name, has_table_privilege(name::regclass, "right") AS is_held
    FROM unnest(${tables()}::text[]) AS name, unnest(${ALL_RIGHTS}::text[]) AS "right"`;
  const isOwner = row?.owner ?? false;
  const needed = new Set(
    Object.entries(RIGHTS).flatMap(([table, rights]) => rights.map((one) => `${one} on ${table}`)),
  );
  return {
    role: row?.role ?? "",
    isSuperuser: row?.superuser ?? false,
    isOwner,
    mayCreate: row?.creates ?? false,
    missing: held.filter(({ name, is_held }) => !is_held && needed.has(name)).map(({ name }) => name),
    needless: isOwner ? [] : held.filter(({ name, is_held }) => is_held && !needed.has(name)).map(({ name }) => name),
  };
}

function tables(): string[] {
  return Object.keys(RIGHTS);
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

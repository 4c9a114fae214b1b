import type { Sql } from "postgres";
import { invalidArgument } from "../../domain/errors.ts";
import { firstRow } from "../connection/first-row.ts";

/**
 * The rights of a server: exactly those that its statements need (`test/postgres/rights.test.ts` removes each). Trigger functions can be
 * executed without a right (PostgreSQL docs, CREATE TRIGGER). A release may add a right and removes none, because servers of the previous
 * release keep running.
 */
export const RIGHTS: Readonly<Record<string, readonly string[]>> = {
  api_keys: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  signing_keys: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  hmac_keys: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  hash_schemes: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  hash_prefix_lengths: ["SELECT", "INSERT", "DELETE"],
  nodes: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  actors: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  limit_buckets: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  bulk_changes: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  accepted_databases: ["SELECT", "INSERT"],
  used_root_secrets: ["SELECT", "INSERT"],
  key_page_sessions: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  webhook_endpoints: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  webhook_deliveries: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  webhook_attempts: ["SELECT", "INSERT"],
  schema_migrations: ["SELECT"],
  // Written by triggers, which run as the owner.
  raw_key_digests: ["SELECT"],
  audit_events: ["SELECT"],
  audit_log: ["SELECT"],
  audit_tiles: ["SELECT"],
  audit_tree: ["SELECT"],
  audit_tree_key: ["SELECT", "INSERT", "UPDATE"],
  // Written by functions, which run as the owner.
  key_usage: ["SELECT"],
  packed_usage: ["SELECT"],
  packed_usage_hours: ["SELECT"],
  top_usage: ["SELECT"],
  usage_log: ["SELECT"],
};

const TABLES = Object.keys(RIGHTS);

/** Functions that a server calls itself; those of the audit log run as the owner. */
export const FUNCTIONS: readonly string[] = [
  "audit_sequence(integer)",
  "audit_deny(jsonb)",
  "audit_limits(jsonb)",
  "audit_grow(bigint,bigint,jsonb,text)",
  "audit_expiry(interval[],integer)",
  "audit_checkpoint()",
  "quota_period_end(timestamptz,text,timestamptz)",
  "usage_flush(uuid,bigint,uuid[],text[],bigint[])",
  "usage_maintain(interval,integer)",
];

/** The rights that a role has, lacks or does not need. */
export interface RoleRights {
  readonly role: string;
  readonly isSuperuser: boolean;
  /** Whether it owns the tables, directly or as a member of a role, and so may change them. */
  readonly isOwner: boolean;
  /** Whether it may create tables and functions in the schema. */
  readonly mayCreate: boolean;
  /** Such as `INSERT on nodes`. */
  readonly missing: readonly string[];
  /** Rights on the tables that no server needs. Empty for an owner, who has all rights. */
  readonly needless: readonly string[];
}

/** All rights on tables (PostgreSQL docs, 5.8) except MAINTAIN, which was added in 17. */
const ALL_RIGHTS = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"];

/** Grants the rights of the servers. Call it under the lock of the migrations, when the tables exist. */
export async function grantRights(sql: Sql, role: string): Promise<void> {
  const rows = await sql<Place[]>`
    SELECT current_schema() AS schema, current_database() AS database,
      EXISTS (SELECT FROM pg_roles WHERE rolname = ${role}) AS "hasRole",
      (SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = current_schema()) AS "ownsSchema",
      (SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()) AS "ownsDatabase"`;
  const place = firstRow(rows);
  if (!place.hasRole)
    throw invalidArgument("--grant-to", `role ${role} does not exist: create it with CREATE ROLE … LOGIN PASSWORD …`);
  await sql.unsafe(grants(place, quoted(role)).join(";\n"));
}

interface Place {
  readonly schema: string;
  readonly database: string;
  readonly hasRole: boolean;
  readonly ownsSchema: boolean;
  readonly ownsDatabase: boolean;
}

/** Before PostgreSQL 15 every role may create objects in the schema `public`. The check ignores grants of other owners. */
function grants({ schema, database, ownsSchema, ownsDatabase }: Place, role: string): string[] {
  const tables = Object.entries(RIGHTS).map(
    ([table, rights]) => `GRANT ${rights.join(", ")} ON ${quoted(schema)}.${table} TO ${role}`,
  );
  const ofSchema = [
    `REVOKE CREATE ON SCHEMA ${quoted(schema)} FROM PUBLIC`,
    `GRANT USAGE ON SCHEMA ${quoted(schema)} TO ${role}`,
  ];
  const ofDatabase = `GRANT CONNECT ON DATABASE ${quoted(database)} TO ${role}`;
  const functions = FUNCTIONS.map((signature) => `GRANT EXECUTE ON FUNCTION ${quoted(schema)}.${signature} TO ${role}`);
  return [...(ownsSchema ? ofSchema : []), ...(ownsDatabase ? [ofDatabase] : []), ...tables, ...functions];
}

/** Returns whether the current role may create or migrate the schema. */
export async function mayMigrate(sql: Sql): Promise<boolean> {
  const rows = await sql<{ may: boolean }[]>`
    SELECT coalesce(
      (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('schema_migrations')),
      has_schema_privilege(current_schema(), 'CREATE'), false) AS may`;
  return firstRow(rows).may;
}

/** Returns the rights of the current role. The tables must exist. */
export async function readRights(sql: Sql): Promise<RoleRights> {
  const rows = await sql<Omit<RoleRights, "missing" | "needless">[]>`
    SELECT current_user AS role, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS "isSuperuser",
      (SELECT bool_or(pg_has_role(relowner, 'USAGE')) FROM pg_class
       JOIN unnest(${TABLES}::text[]) AS name ON oid = name::regclass) AS "isOwner",
      has_schema_privilege(current_schema(), 'CREATE') AS "mayCreate"`;
  const held = await sql<{ name: string; isHeld: boolean }[]>`
    SELECT "right" || ' on ' || name AS name, has_table_privilege(name::regclass, "right") AS "isHeld"
    FROM unnest(${TABLES}::text[]) AS name, unnest(${ALL_RIGHTS}::text[]) AS "right"
    UNION ALL
    SELECT 'EXECUTE on ' || name, has_function_privilege(name::regprocedure, 'EXECUTE') FROM unnest(${[...FUNCTIONS]}::text[]) AS name`;
  const needed = new Set([
    ...Object.entries(RIGHTS).flatMap(([table, rights]) => rights.map((one) => `${one} on ${table}`)),
    ...FUNCTIONS.map((signature) => `EXECUTE on ${signature}`),
  ]);
  const role = firstRow(rows);
  return {
    ...role,
    missing: held.filter(({ name, isHeld }) => !isHeld && needed.has(name)).map(({ name }) => name),
    needless: role.isOwner
      ? []
      : held.filter(({ name, isHeld }) => isHeld && !needed.has(name)).map(({ name }) => name),
  };
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

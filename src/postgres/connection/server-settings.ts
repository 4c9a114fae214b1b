import { firstRow } from "./first-row.ts";
import type { Database } from "./pool.ts";
import { isForeign } from "./session-settings.ts";

/** The settings of a PostgreSQL server that matter to Keyhold. */
export interface ServerSettings {
  /** Such as 180001 for 18.1 (PostgreSQL docs, server_version_num). */
  readonly versionNumber: number;
  readonly version: string;
  readonly fsync: boolean;
  readonly fullPageWrites: boolean;
  /** The value for our connections: a role or a database may override that of the server. */
  readonly synchronousCommit: boolean;
  /** Whether it is a standby or every transaction is read-only. */
  readonly isReadOnly: boolean;
  /** Maximum number of our connections: the smallest limit of the server (without reserved ones), the database and the role. */
  readonly connections: number;
  /** Milliseconds since the Unix epoch, by its clock. */
  readonly time: number;
}

/** A setting that the database or the role gives to new sessions. */
export interface ConfiguredSetting {
  /** Such as `ALTER ROLE keyhold_server`: the statement that sets it, up to `SET`. */
  readonly statement: string;
  readonly name: string;
  readonly value: string;
  /** Whether results would have another meaning, or none, if our connections did not pin it (`session-settings.ts`). */
  readonly isForeign: boolean;
}

/** Returns what `ALTER DATABASE … SET` and `ALTER ROLE … SET` (PostgreSQL docs, pg_db_role_setting) give to our sessions. */
export async function readConfiguredSettings(database: Database): Promise<ConfiguredSetting[]> {
  const rows = await database.run(
    (sql) => sql<(Omit<ConfiguredSetting, "isForeign"> & { readonly schema: string | null })[]>`
      SELECT CASE WHEN setrole = 0 THEN format('ALTER DATABASE %I', current_database())
          WHEN setdatabase = 0 THEN format('ALTER ROLE %I', current_user)
          ELSE format('ALTER ROLE %I IN DATABASE %I', current_user, current_database()) END AS statement,
        split_part(setting, '=', 1) AS name, substr(setting, strpos(setting, '=') + 1) AS value, current_schema() AS schema
      FROM pg_db_role_setting, unnest(setconfig) AS setting
      WHERE setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
        AND setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = current_user))
      ORDER BY statement, name`,
  );
  return rows.map(({ schema, ...setting }) => ({ ...setting, isForeign: isForeign(setting, schema ?? "") }));
}

export async function readServerSettings(database: Database): Promise<ServerSettings> {
  const rows = await database.run(
    (sql) => sql<ServerSettings[]>`
      SELECT current_setting('server_version_num')::int AS "versionNumber", current_setting('server_version') AS version,
        current_setting('fsync')::bool AS fsync, current_setting('full_page_writes')::bool AS "fullPageWrites",
        current_setting('synchronous_commit') <> 'off' AS "synchronousCommit",
        pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool AS "isReadOnly",
        least(
          current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
            - coalesce(current_setting('reserved_connections', true)::int, 0),
          (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()),
          (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user)
        ) AS connections,
        extract(epoch FROM clock_timestamp()) * 1000 AS time`,
  );
  return firstRow(rows);
}

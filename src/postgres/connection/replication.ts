import { firstRow } from "./first-row.ts";
import type { Database } from "./pool.ts";
import { withPrimary } from "./primary.ts";
import { serverId } from "./server-position.ts";

/** Standbys that commits wait for: `synchronous_standby_names` (PostgreSQL docs, 19.6.2). */
export interface SynchronousStandbys {
  readonly method: "FIRST" | "ANY";
  readonly count: number;
  /** In lower case, because the comparison ignores case; `*` matches every name. */
  readonly names: readonly string[];
}

export interface Standby {
  readonly name: string;
  /** Such as `streaming`; null if the role may not read it. */
  readonly state: string | null;
}

/** The replication of a primary as visible to the role. */
export interface Replication {
  readonly role: string;
  readonly synchronousStandbyNames: string;
  /** Null: commits wait for no standby. */
  readonly synchronous: SynchronousStandbys | null;
  /** The value for our connections: a role or a database may override that of the server. */
  readonly synchronousCommit: string;
  /** Standbys connected by physical replication. */
  readonly standbys: readonly Standby[];
}

export async function readReplication(database: Database): Promise<Replication> {
  const rows = await database.run(
    (sql) => sql<Omit<Replication, "synchronous">[]>`
      SELECT current_user AS role, current_setting('synchronous_standby_names') AS synchronous_standby_names,
        current_setting('synchronous_commit') AS synchronous_commit, (
          SELECT coalesce(json_agg(json_build_object('name', application_name, 'state', state) ORDER BY application_name), '[]')
          FROM pg_stat_replication
          WHERE state IS DISTINCT FROM 'backup' AND application_name <> 'pg_basebackup'
            AND pid NOT IN (SELECT active_pid FROM pg_replication_slots WHERE slot_type = 'logical' AND active)
        ) AS standbys`,
  );
  const replication = firstRow(rows);
  return { ...replication, synchronous: parseStandbyNames(replication.synchronousStandbyNames) };
}

/** Parses `synchronous_standby_names`: `ANY 1 (s1, s2)`, `FIRST 2 (s1, "s 2", *)`, `2 (s1, s2)` or `s1, s2`. Null: it is empty. */
export function parseStandbyNames(text: string): SynchronousStandbys | null {
  const [, method, count, list] = /^\s*(?:(FIRST|ANY)\b\s*)?(\d+)\s*\(([\s\S]*)\)\s*$/i.exec(text) ?? [];
  const names = [...(list ?? text).matchAll(/"((?:[^"]|"")*)"|[^\s,"]+/g)].map(([plain, quoted]) =>
    (quoted?.replaceAll('""', '"') ?? plain).toLowerCase(),
  );
  if (names.length === 0) return null;
  return { method: method?.toUpperCase() === "ANY" ? "ANY" : "FIRST", count: Number(count ?? 1), names };
}

/** Returns whether commits may wait for a standby of this name. */
export function isSynchronousName({ names }: SynchronousStandbys, name: string): boolean {
  return names.includes("*") || names.includes(name.toLowerCase());
}

/** Returns the identity of the server at the connections of a database, and at a connection to the primary of a URL. */
export function readServers(database: Database, url: string): Promise<readonly [string, string]> {
  return withPrimary({ url, statementTimeout: 5_000, prepare: false }, async (sql) => {
    const [other] = await sql<{ server: string }[]>`SELECT ${serverId(sql)} AS server`;
    const [ours] = await database.run((data) => data<{ server: string }[]>`SELECT ${serverId(data)} AS server`);
    return [ours?.server ?? "", other?.server ?? ""];
  });
}

import type { Database } from "./database.ts";

/** A process of PostgreSQL that serves a connection of a node. */
export interface Backend {
  readonly pid: number;
  /** Where its connection comes from. */
  readonly port: number;
}

/** Milliseconds: a database that has another fault may not answer. */
const PATIENCE = 1_000;

/** All that serve nodes; none if the database does not say. */
export function backends(database: Database): Promise<Backend[]> {
  return find(database, "");
}

/** Those of the nodes' feeds of changes. */
export function feedOf(database: Database): Promise<Backend[]> {
  return find(database, "AND (application_name = 'keyhold feed' OR query ILIKE 'listen%')");
}

async function find({ admin }: Database, condition: string): Promise<Backend[]> {
  const query = admin.unsafe<Backend[]>(
    `SELECT pid, client_port AS port FROM pg_stat_activity WHERE usename = 'keyhold_server' AND client_port > 0 ${condition}`,
  );
  const late = new Promise<Backend[]>((resolve) => setTimeout(resolve, PATIENCE, []).unref());
  return Promise.race([query.catch(() => []), late]);
}

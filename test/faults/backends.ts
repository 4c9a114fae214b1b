import type { Database } from "./database.ts";

/** A PostgreSQL backend that serves a connection of a node. */
export interface Backend {
  readonly pid: number;
  /** Client port of its connection. */
  readonly port: number;
}

/** Milliseconds, since a database with another fault may not answer. */
const QUERY_TIMEOUT = 1_000;

/** Returns all backends that serve nodes; none if the database does not answer. */
export function backends(database: Database): Promise<Backend[]> {
  return find(database, "");
}

/** Returns the backends of the nodes' change feeds. */
export function feedOf(database: Database): Promise<Backend[]> {
  return find(database, "AND (application_name = 'keyhold feed' OR query ILIKE 'listen%')");
}

async function find({ admin }: Database, condition: string): Promise<Backend[]> {
  const query = admin.unsafe<Backend[]>(
    `SELECT pid, client_port AS port FROM pg_stat_activity WHERE usename = 'keyhold_server' AND client_port > 0 ${condition}`,
  );
  const timeout = new Promise<Backend[]>((resolve) => setTimeout(resolve, QUERY_TIMEOUT, []).unref());
  return Promise.race([query.catch(() => []), timeout]);
}

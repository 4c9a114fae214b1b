import { probeNotifications } from "../../../postgres/cluster/notify-probe.ts";
import { readServers } from "../../../postgres/connection/replication.ts";
import { type Check, type DatabaseContext, error, ok } from "../finding.ts";

/** Timeout in milliseconds. A notification takes one or two. */
const TIMEOUT = 3_000;

/** Checks that a notification sent over the pool arrives on the connection that listens. */
export const checkNotifications: Check<DatabaseContext> = async ({ config, database, url }) => {
  const took = await probeNotifications(config.databaseListenUrl ?? url, database, TIMEOUT);
  if (took !== null) return [ok(`a notification arrived within ${took.toFixed(1)} ms`)];
  const remedy =
    config.databaseListenUrl === null
      ? "a transaction pooler such as PgBouncer drops notifications: set KEYHOLD_DATABASE_LISTEN_URL to a URL that connects directly to the database"
      : "KEYHOLD_DATABASE_LISTEN_URL must connect directly to the same database as KEYHOLD_DATABASE_URL, not through a pooler";
  return [error(`no notification arrived within ${TIMEOUT / 1000} s`, remedy)];
};

/** Checks that data and notifications come from one server: otherwise a node is not notified of changes to what it reads. */
export const checkServers: Check<DatabaseContext> = async ({ config, database, url }) => {
  const [data, notifications] = await readServers(database, config.databaseListenUrl ?? url);
  if (data === notifications) return [ok(`data and notifications come from one server (${describe(data)})`)];
  const message = `data and notifications come from two servers (${describe(data)}; ${describe(notifications)}): verifications and changes are rejected`;
  const remedy =
    "set KEYHOLD_DATABASE_URL and KEYHOLD_DATABASE_LISTEN_URL to the same primary, and change both together";
  return [error(message, remedy)];
};

/** Formats `<system identifier>/<timeline>/<start time>`. */
function describe(server: string): string {
  const [identifier, timeline = "", start = ""] = server.split("/");
  const since = new Date(Number(start) * 1000).toISOString();
  return `system identifier ${identifier}, timeline ${Number.parseInt(timeline, 16)}, started ${since}`;
}

import { probeNotifications } from "../../../postgres/notify-probe.ts";
import { type Check, type DatabaseContext, error, ok } from "../finding.ts";

/** Timeout in milliseconds. A notification takes one or two. */
const TIMEOUT = 3_000;

/** Checks that a notification sent over the pool arrives on the connection that listens. */
export const checkNotifications: Check<DatabaseContext> = async ({ config, database, url }) => {
  const took = await probeNotifications(config.databaseListenUrl ?? url, database, TIMEOUT);
  if (took !== null) return [ok(`a notification arrives within ${took.toFixed(1)} ms`)];
  const remedy =
    config.databaseListenUrl === null
      ? "a transaction pooler such as PgBouncer drops notifications: set KEYHOLD_DATABASE_LISTEN_URL to the database itself"
      : "KEYHOLD_DATABASE_LISTEN_URL must name the same database as KEYHOLD_DATABASE_URL, without a pooler";
  return [error(`no notification arrived within ${TIMEOUT / 1000} s`, remedy)];
};

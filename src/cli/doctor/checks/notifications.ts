import { probeNotifications } from "../../../postgres/notify-probe.ts";
import { type Answering, type Check, error, ok } from "../finding.ts";

/** Milliseconds. It takes one or two. */
const TIMEOUT = 3_000;

/** What is sent over the connections of the service must arrive where it listens. */
export const checkNotifications: Check<Answering> = async ({ config, database, url }) => {
  const took = await probeNotifications(config.databaseListenUrl ?? url, database, TIMEOUT);
  if (took !== null) return [ok(`a notification takes ${took.toFixed(1)} ms`)];
  const remedy =
    config.databaseListenUrl === null
      ? "a pooler of transactions such as PgBouncer lets none through: set KEYHOLD_DATABASE_LISTEN_URL to the database itself"
      : "KEYHOLD_DATABASE_LISTEN_URL must lead to the same database as KEYHOLD_DATABASE_URL, and not through a pooler";
  return [error(`no notification arrives within ${TIMEOUT / 1000} s`, remedy)];
};

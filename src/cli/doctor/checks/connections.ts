import { availableParallelism } from "node:os";
import { listNodes } from "../../../postgres/nodes.ts";
import { readServerSettings } from "../../../postgres/server-settings.ts";
import { type Check, type DatabaseContext, error, ok, warning } from "../finding.ts";

/** Connections of a process outside its pool (docs/configuration.md, KEYHOLD_DATABASE_POOL_SIZE). */
const OUTSIDE_POOL = 8;

const REMEDY = "raise max_connections, or lower KEYHOLD_DATABASE_POOL_SIZE or the workers";

/** Checks that the connections of all servers fit. Assumes that the other servers have the configuration of this one. */
export const checkConnections: Check<DatabaseContext> = async ({ config, database, hasSchema }) => {
  const { connections } = await readServerSettings(database);
  const workers = config.workers === "auto" ? availableParallelism() : config.workers;
  const each = config.databasePoolSize + OUTSIDE_POOL;
  if (workers * each > connections && config.databaseUrl !== null) {
    const message = `${workers} process(es) with ${each} connections each exceed the database's ${connections}`;
    return [error(message, REMEDY)];
  }
  const running = hasSchema ? (await listNodes(database)).filter(({ leaseAge, ttl }) => leaseAge <= ttl).length : 0;
  const message = `${running} running process(es) may use ${running * each} of ${connections} connections`;
  return [running * each > connections ? warning(message, REMEDY) : ok(message)];
};

import { availableParallelism } from "node:os";
import { listNodes } from "../../../postgres/nodes.ts";
import { readServerSettings } from "../../../postgres/server-settings.ts";
import { type Answering, type Check, error, ok, warning } from "../finding.ts";

/** Of each process beside its pool (docs/configuration.md, KEYHOLD_DATABASE_POOL_SIZE). */
const BESIDE_THE_POOL = 8;

const REMEDY = "raise max_connections, or lower KEYHOLD_DATABASE_POOL_SIZE or the workers";

/** Other servers are taken to be set up as this one is. */
export const checkConnections: Check<Answering> = async ({ config, database, hasSchema }) => {
  const { connections } = await readServerSettings(database);
  const workers = config.workers === "auto" ? availableParallelism() : config.workers;
  const each = config.databasePoolSize + BESIDE_THE_POOL;
  if (workers * each > connections && config.databaseUrl !== null) {
    const message = `${workers} process(es) of ${each} connections each do not fit into the ${connections} of the database`;
    return [error(message, REMEDY)];
  }
  const running = hasSchema ? (await listNodes(database)).filter(({ leaseAge, ttl }) => leaseAge <= ttl).length : 0;
  const message = `${running} process(es) run, which may take ${running * each} of ${connections} connections`;
  return [running * each > connections ? warning(message, REMEDY) : ok(message)];
};

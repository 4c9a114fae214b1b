import cluster from "node:cluster";
import { announce } from "../../announce.ts";
import type { Config } from "../../config.ts";
import { openForServing } from "../../start.ts";
import { releaseYoungGeneration } from "../heap.ts";
import { createLog } from "../log.ts";
import { nextSignal } from "../signals.ts";
import { startCrew } from "./crew.ts";

/**
 * Serves the port from `count` processes until the first signal. The database, its schema and the root secret are brought about here,
 * once; the workers find them.
 */
export async function serveByWorkers(config: Config, count: number): Promise<void> {
  const logger = createLog(config.logLevel, "shared");
  const settings = { max_connections: String(maxConnections(config, count)) };
  const foundation = await openForServing({ ...config, cacheBytes: 0 }, logger, { settings });
  try {
    const databaseUrl = config.databaseUrl === null ? foundation.url : null;
    const crew = await startCrew(count, databaseUrl, (level, message) => logger[level](message));
    announce(config, crew.url, logger);
    releaseYoungGeneration();
    const signal = await nextSignal();
    void nextSignal().then(stopAtOnce);
    logger.info({ signal }, "stopping");
    await crew.stop();
  } finally {
    await foundation.close();
  }
  logger.info("stopped");
}

/** Of the embedded database: PostgreSQL's default of 100 is enough for five workers. */
function maxConnections({ databasePoolSize }: Config, count: number): number {
  return Math.max(100, count * (databasePoolSize + BESIDE_THE_POOL) + OF_COMMANDS);
}

/** Connections of a worker that are not in its pool, and some to spare. */
const BESIDE_THE_POOL = 10;

/** For commands beside the server, and for those who look after the database. */
const OF_COMMANDS = 20;

function stopAtOnce(): void {
  for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill("SIGKILL");
  process.exit(1);
}

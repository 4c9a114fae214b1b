import cluster from "node:cluster";
import type { Logger } from "pino";
import { counter, gauge, type Sample } from "../../observability/metrics/family.ts";
import type { Scrape } from "../../observability/metrics/port.ts";
import { createSource, mergedText } from "../../observability/metrics/source.ts";
import { type Config, OUTSIDE_POOL } from "../../server/config/config.ts";
import { uncaughtMetric } from "../../server/metrics.ts";
import { announce, openForServing, withMetricsPort } from "../../server/start.ts";
import { releaseYoungGeneration } from "../heap.ts";
import { signalToStop } from "../signals.ts";
import { type Uncaught, watchUncaught } from "../uncaught.ts";
import { startWorkerPool, type WorkerPool } from "./worker-pool.ts";

/**
 * Serves the port from `count` processes until the first signal. The primary opens the database, migrates it and creates the root secret;
 * it does not serve calls itself.
 */
export async function serveByWorkers(config: Config, count: number, logger: Logger): Promise<void> {
  const uncaught = watchUncaught(logger);
  await withMetricsPort(config, logger, async (metrics) => {
    const settings = { max_connections: String(maxConnections(config, count)) };
    const resources = await openForServing({ ...config, cacheBytes: 0 }, logger, { settings });
    try {
      const databaseUrl = config.databaseUrl === null ? resources.url : null;
      const pool = await startWorkerPool(count, databaseUrl, (level, message) => logger[level](message));
      metrics?.serve(scrapeOf(pool, uncaught));
      announce(config, pool, logger, metrics?.url);
      releaseYoungGeneration();
      const signal = await uncaught.or(signalToStop(killWorkers));
      logger.info({ signal }, "stopping");
      await pool.stop();
    } finally {
      await resources.close();
    }
    await metrics?.close();
  });
  logger.info("stopped");
  uncaught.exitIfAny();
}

/** Labels each worker by its number. A restarted worker counts from zero, which `rate()` treats as a reset. */
function scrapeOf(pool: WorkerPool, uncaught: Uncaught): Scrape {
  const { counts } = pool;
  const metrics = [
    gauge("keyhold_workers", "Workers that are serving.", () => counts().running),
    gauge("keyhold_workers_configured", "Workers configured.", () => counts().configured),
    counter(
      "keyhold_worker_restarts_total",
      "Workers started to replace workers that exited or failed.",
      () => counts().restarts,
    ),
    uncaughtMetric(() => uncaughtByWorker(pool, uncaught)),
  ];
  const own = createSource(metrics, { worker: "parent" });
  return async () => mergedText([await own.snapshot(), ...(await pool.scrape())]);
}

/** Counted by the primary, since a failed worker exits before the next scrape. */
function uncaughtByWorker({ counts }: WorkerPool, uncaught: Uncaught): Sample[] {
  const workers = [...counts().uncaught].map(([worker, value]) => ({ labels: { worker: String(worker) }, value }));
  return [{ labels: { worker: "parent" }, value: uncaught.count() }, ...workers];
}

/** Returns `max_connections` of the embedded database. The default of 100 is enough for three workers and one being replaced. */
function maxConnections({ databasePoolSize }: Config, count: number): number {
  return Math.max(100, (count + 1) * (databasePoolSize + OUTSIDE_POOL) + RESERVED);
}

/** Connections for commands and administrators. */
const RESERVED = 20;

function killWorkers(): void {
  for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill("SIGKILL");
  process.exit(1);
}

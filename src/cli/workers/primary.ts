import cluster from "node:cluster";
import type { Logger } from "pino";
import { counter, type Family, gauge, type Sample } from "../../observability/metrics/family.ts";
import type { MetricsPort, Scrape } from "../../observability/metrics/port.ts";
import { createSource, mergedText } from "../../observability/metrics/source.ts";
import type { Config } from "../../server/config/config.ts";
import { uncaughtMetric } from "../../server/metrics.ts";
import { announce, openForServing, withMetricsPort } from "../../server/start.ts";
import { releaseYoungGeneration } from "../heap.ts";
import { signalToStop } from "../signals.ts";
import { type Uncaught, watchUncaught } from "../uncaught.ts";
import { startWorkerPool, type WorkerPool } from "./worker-pool.ts";

/**
 * Serves the port from `count` processes until the first signal. The database, its schema and the root secret are brought about here,
 * once; the workers find them.
 */
export async function serveByWorkers(config: Config, count: number, logger: Logger): Promise<void> {
  const uncaught = watchUncaught(logger);
  await withMetricsPort(config, logger, async (metrics) => {
    await runWorkerPool(config, count, logger, metrics, uncaught);
    await metrics?.close();
  });
  logger.info("stopped");
  uncaught.exitIfAny();
}

async function runWorkerPool(
  config: Config,
  count: number,
  logger: Logger,
  metrics: MetricsPort | null,
  uncaught: Uncaught,
): Promise<void> {
  const settings = { max_connections: String(maxConnections(config, count)) };
  const resources = await openForServing({ ...config, cacheBytes: 0 }, logger, { settings });
  try {
    const databaseUrl = config.databaseUrl === null ? resources.url : null;
    const crew = await startWorkerPool(count, databaseUrl, (level, message) => logger[level](message));
    metrics?.serve(scrapeOf(crew, uncaught));
    announce(config, crew.url, logger, metrics?.url);
    releaseYoungGeneration();
    const signal = await uncaught.or(signalToStop(stopAtOnce));
    logger.info({ signal }, "stopping");
    await crew.stop();
  } finally {
    await resources.close();
  }
}

/** Each worker has the label of its number: one that is started again begins at zero, which `rate()` sees as what it is. */
function scrapeOf(crew: WorkerPool, uncaught: Uncaught): Scrape {
  const own = createSource([...workerMetrics(crew), uncaughtMetric(() => byWorker(crew, uncaught))], {
    worker: "parent",
  });
  return async () => mergedText([await own.snapshot(), ...(await crew.scrape())]);
}

/** The parent counts for its workers, since one that has failed ends before the next scrape. */
function byWorker({ counts }: WorkerPool, uncaught: Uncaught): Sample[] {
  const workers = [...counts().uncaught].map(([worker, value]) => ({ labels: { worker: String(worker) }, value }));
  return [{ labels: { worker: "parent" }, value: uncaught.count() }, ...workers];
}

function workerMetrics({ counts }: WorkerPool): Family[] {
  return [
    gauge("keyhold_workers", "Processes that serve the port.", () => counts().running),
    gauge("keyhold_workers_configured", "Processes that should serve the port.", () => counts().configured),
    counter(
      "keyhold_worker_restarts_total",
      "Processes that were started in place of one that had ended.",
      () => counts().restarts,
    ),
  ];
}

/** Of the embedded database: PostgreSQL's default of 100 is enough for three workers, and one that ends beside its successor. */
function maxConnections({ databasePoolSize }: Config, count: number): number {
  return Math.max(100, (count + 1) * (databasePoolSize + BESIDE_THE_POOL) + OF_COMMANDS);
}

/** Connections of a worker that are not in its pool, and some to spare. */
const BESIDE_THE_POOL = 10;

/** For commands beside the server, and for those who look after the database. */
const OF_COMMANDS = 20;

function stopAtOnce(): void {
  for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill("SIGKILL");
  process.exit(1);
}

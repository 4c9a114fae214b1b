import cluster, { type Worker } from "node:cluster";
import type { Logger } from "pino";
import { invalidArgument, KeyholdError } from "../../domain/errors.ts";
import { withTimeout } from "../../lib/with-timeout.ts";
import { type Config, readConfig } from "../../server/config/config.ts";
import type { Service } from "../../server/service.ts";
import { startService } from "../../server/start.ts";
import { exitStatus, explain } from "../failure.ts";
import { boundHeapGrowth, holdYoungGeneration, releaseYoungGeneration } from "../heap.ts";
import { createLog } from "../log.ts";
import { DRAIN_DELAY, signalToStop } from "../signals.ts";
import { type Uncaught, watchUncaught } from "../uncaught.ts";
import type { Report } from "./ipc.ts";
import { listenToPrimary, type Primary } from "./primary-link.ts";

/** One of the processes on the port. It ends by a signal, by order of its parent, and when that has gone. */
export async function runWorker(): Promise<void> {
  boundHeapGrowth();
  holdYoungGeneration();
  const { worker } = cluster;
  if (worker === undefined) throw invalidArgument("worker", "is started by serve alone");
  const parent = listenToPrimary(worker);
  const { number, databaseUrl } = await parent.started;
  const config = configOf(databaseUrl);
  const logger = createLog(config.logLevel, "shared").child({ worker: number });
  const uncaught = watchUncaught(logger, () => void report(worker, { kind: "uncaught" }));
  const options = { workers: parent.count, drainDelay: DRAIN_DELAY, metricLabels: { worker: String(number) } };
  const service = await startService(config, logger, options).catch((error) => fail(worker, error));
  parent.onScrape((number) => void tellMetrics(worker, service, number, logger));
  await report(worker, { kind: "serving", url: service.url });
  releaseYoungGeneration();
  const signal = await untilTold(parent, uncaught);
  logger.info({ signal }, "stopping");
  await service.close();
  process.exit();
}

/** Milliseconds that a worker which has failed keeps the port open, for want of another that does. */
const HANDOVER_TIMEOUT = 10_000;

/** The embedded database is the parent's: were it looked for here while it is down, it would be started here. */
function configOf(databaseUrl: string | null): Config {
  const config = readConfig();
  return { ...config, databaseUrl: databaseUrl ?? config.databaseUrl };
}

/** A terminal's Ctrl-C comes to all processes, so the parent's order may come before our first signal or after it. */
async function untilTold(parent: Primary, uncaught: Uncaught): Promise<string> {
  const told = Promise.race([signalToStop(), parent.untilStopped()]);
  const reason = await uncaught.or(told);
  if (uncaught.count() > 0) await withTimeout(told, HANDOVER_TIMEOUT, () => undefined);
  return reason;
}

/** A parent that hears nothing does without. */
async function tellMetrics(worker: Worker, { metrics }: Service, number: number, logger: Logger): Promise<void> {
  try {
    await report(worker, { kind: "metrics", number, snapshot: await metrics.snapshot() });
  } catch (err) {
    logger.warn({ err }, "the metrics could not be read");
  }
}

async function fail(worker: Worker, error: unknown): Promise<never> {
  const code = error instanceof KeyholdError ? error.code : "INTERNAL";
  await report(worker, { kind: "failed", code, message: explain(error) });
  process.exit(exitStatus(error));
}

/** Resolves when it is on its way. */
function report(worker: Worker, message: Report): Promise<void> {
  return new Promise((resolve) => worker.process.send?.(message, undefined, undefined, () => resolve()));
}

import cluster, { type Worker } from "node:cluster";
import type { Logger } from "pino";
import { invalidArgument, KeyholdError } from "../../domain/errors.ts";
import { withTimeout } from "../../lib/with-timeout.ts";
import { readConfig } from "../../server/config/config.ts";
import type { Service } from "../../server/service.ts";
import { startService } from "../../server/start.ts";
import { exitStatus, explain } from "../failure.ts";
import { boundHeapGrowth, holdYoungGeneration, releaseYoungGeneration } from "../heap.ts";
import { createLog } from "../log.ts";
import { DRAIN_DELAY, signalToStop } from "../signals.ts";
import { type Uncaught, watchUncaught } from "../uncaught.ts";
import type { PrimaryMessage, WorkerCount, WorkerMessage } from "./ipc.ts";

/** Runs one worker process, until a signal, a message of the primary, or the loss of the primary. */
export async function runWorker(): Promise<void> {
  boundHeapGrowth();
  holdYoungGeneration();
  const { worker } = cluster;
  if (worker === undefined) throw invalidArgument("worker", "can be started only by keyhold serve");
  const primary = connectToPrimary(worker);
  const { number, databaseUrl } = await primary.started;
  const own = readConfig();
  // The primary's embedded database: opening it here could start a second one while the primary's restarts.
  const config = { ...own, databaseUrl: databaseUrl ?? own.databaseUrl };
  const logger = createLog(config.logLevel, "shared").child({ worker: number });
  const uncaught = watchUncaught(logger, () => void send(worker, { kind: "uncaught" }));
  const options = { workers: primary.count, drainDelay: DRAIN_DELAY, metricLabels: { worker: String(number) } };
  const service = await startService(config, logger, options).catch((error) => fail(worker, error));
  worker.process.on("message", ({ kind }: PrimaryMessage) => {
    if (kind === "scrape") void sendMetrics(worker, service, logger);
  });
  await send(worker, { kind: "serving", url: service.url, gatewayUrl: service.gatewayUrl });
  releaseYoungGeneration();
  const signal = await waitForStop(primary, uncaught);
  logger.info({ signal }, "stopping");
  await service.close();
  process.exit();
}

/** Milliseconds for which a failed worker keeps the port open while its replacement starts. */
const HANDOVER_TIMEOUT = 10_000;

/** Ctrl-C signals all processes, so the message of the primary may arrive before or after this worker's signal. */
async function waitForStop(primary: ReturnType<typeof connectToPrimary>, uncaught: Uncaught): Promise<string> {
  const requested = Promise.race([signalToStop(), primary.stopped()]);
  const reason = await uncaught.or(requested);
  if (uncaught.count() > 0) await withTimeout(requested, HANDOVER_TIMEOUT, () => undefined);
  return reason;
}

/** On failure sends nothing: the primary times out. */
async function sendMetrics(worker: Worker, { metrics }: Service, logger: Logger): Promise<void> {
  try {
    await send(worker, { kind: "metrics", snapshot: await metrics.snapshot() });
  } catch (err) {
    logger.warn({ err }, "the metrics could not be collected");
  }
}

async function fail(worker: Worker, error: unknown): Promise<never> {
  const code = error instanceof KeyholdError ? error.code : "INTERNAL";
  await send(worker, { kind: "failed", code, message: explain(error) });
  process.exit(exitStatus(error));
}

/** Resolves when the message is sent. */
function send(worker: Worker, message: WorkerMessage): Promise<void> {
  return new Promise((resolve) => worker.process.send?.(message, undefined, undefined, () => resolve()));
}

function connectToPrimary(worker: Worker) {
  const started = Promise.withResolvers<Extract<PrimaryMessage, { readonly kind: "start" }>>();
  const stopped = Promise.withResolvers<string>();
  let count: WorkerCount = { running: 0, configured: 0 };
  worker.process.on("message", (message: PrimaryMessage) => {
    if (message.kind === "start") started.resolve(message);
    else if (message.kind === "count") count = message.count;
    else if (message.kind === "stop") stopped.resolve("stopped by the parent process");
  });
  return {
    started: started.promise,
    count: () => count,
    /** Resolves with the reason when the worker must stop. Until this is called, the loss of the primary exits at once. */
    stopped: () => {
      worker.once("disconnect", () => {
        // Otherwise Node exits now, with calls in flight.
        worker.exitedAfterDisconnect = true;
        stopped.resolve("the parent process has exited");
      });
      return stopped.promise;
    },
  };
}

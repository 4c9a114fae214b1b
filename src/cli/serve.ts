import { availableParallelism } from "node:os";
import type { Logger } from "pino";
import { type Config, findUnknownVariables, readConfig, toWorkers } from "../server/config/config.ts";
import { startService } from "../server/start.ts";
import { boundHeapGrowth, holdYoungGeneration, releaseYoungGeneration } from "./heap.ts";
import { createLog } from "./log.ts";
import { DRAIN_DELAY, signalToStop } from "./signals.ts";
import { watchUncaught } from "./uncaught.ts";

/** Runs the server, in one or several processes, until SIGINT or SIGTERM; a second signal exits at once. */
export async function serve(options: { readonly workers?: string }): Promise<void> {
  boundHeapGrowth();
  holdYoungGeneration();
  const config = readConfig();
  const wanted = options.workers === undefined ? config.workers : toWorkers("--workers", options.workers);
  const count = wanted === "auto" ? availableParallelism() : wanted;
  const logger = createLog(config.logLevel, count === 1 ? "own" : "shared");
  for (const message of findUnknownVariables()) logger.warn(message);
  if (count === 1) await serveInProcess(config, logger);
  else await (await import("./workers/primary.ts")).serveByWorkers(config, count, logger);
}

async function serveInProcess(config: Config, logger: Logger): Promise<void> {
  const uncaught = watchUncaught(logger);
  const service = await startService(config, logger, { drainDelay: DRAIN_DELAY, uncaught: uncaught.count });
  releaseYoungGeneration();
  const signal = await uncaught.or(signalToStop());
  logger.info({ signal }, "stopping");
  await service.close();
  logger.info("stopped");
  uncaught.exitIfAny();
}

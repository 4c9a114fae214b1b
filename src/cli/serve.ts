import { availableParallelism } from "node:os";
import { type Config, readConfig, toWorkers } from "../config.ts";
import { startService } from "../start.ts";
import { boundHeapGrowth, holdYoungGeneration, releaseYoungGeneration } from "./heap.ts";
import { createLog } from "./log.ts";
import { LINGER_TIMEOUT, nextSignal } from "./signals.ts";

export interface ServeCommandOptions {
  /** As it was written; it wins over the configuration. */
  readonly workers?: string;
}

/** Runs the server, in one process or in several, until it is told to stop; a second signal stops it at once. */
export async function serve(options: ServeCommandOptions): Promise<void> {
  boundHeapGrowth();
  holdYoungGeneration();
  const config = readConfig();
  const wanted = options.workers === undefined ? config.workers : toWorkers("--workers", options.workers);
  const count = wanted === "auto" ? availableParallelism() : wanted;
  if (count === 1) await serveAlone(config);
  else await (await import("./workers/parent.ts")).serveByWorkers(config, count);
}

async function serveAlone(config: Config): Promise<void> {
  const logger = createLog(config.logLevel);
  const service = await startService(config, logger, { lingerTimeout: LINGER_TIMEOUT });
  releaseYoungGeneration();
  const signal = await nextSignal();
  void nextSignal().then(() => process.exit(1));
  logger.info({ signal }, "stopping");
  await service.close();
  logger.info("stopped");
}

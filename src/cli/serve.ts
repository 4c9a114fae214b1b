import { readConfig } from "../config.ts";
import { startService } from "../start.ts";
import { boundHeapGrowth, holdYoungGeneration, releaseYoungGeneration } from "./heap.ts";
import { createLog } from "./log.ts";

/** Runs the server until it is told to stop; a second signal stops it at once. */
export async function serve(): Promise<void> {
  boundHeapGrowth();
  holdYoungGeneration();
  const config = readConfig();
  const logger = createLog(config.logLevel);
  const service = await startService(config, logger);
  releaseYoungGeneration();
  const signal = await nextSignal();
  void nextSignal().then(() => process.exit(1));
  logger.info({ signal }, "stopping");
  await service.close();
  logger.info("stopped");
}

function nextSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, resolve);
  });
}

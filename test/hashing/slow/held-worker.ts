import { parentPort } from "node:worker_threads";
import { parseStoredParameters } from "../../../src/hashing/phc/stored-parameters.ts";
import { computeSlowHash } from "../../../src/hashing/slow/compute.ts";
import type { HashTask } from "../../../src/hashing/slow/worker.ts";
import { LONG } from "./samples.ts";

/**
 * A thread of normal priority, which a busy machine does not starve, that never ends `LONG` and computes all other hashes: so a test decides
 * what is computed and what waits, by ending threads.
 */
parentPort?.on("message", async ({ parameters, message }: HashTask) => {
  if (parameters === LONG) return;
  parentPort?.postMessage({ output: await computeSlowHash(parseStoredParameters(parameters), message) });
});

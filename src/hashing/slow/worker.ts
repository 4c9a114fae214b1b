import { parentPort } from "node:worker_threads";
import { parseStoredParameters } from "../phc/stored-parameters.ts";
import { computeSlowHash } from "./compute.ts";
import { lowerThreadPriority } from "./low-priority.ts";

/** The program of a worker thread: computes one slow hash after another. It has no server keys and no environment. */

export interface HashTask {
  /** As `formatParameters` returns them. */
  readonly parameters: string;
  /** The raw key, with the texts around it. Transferred, and zeroed once it is hashed. */
  readonly message: Uint8Array<ArrayBuffer>;
}

export type HashResult = { readonly output: Uint8Array } | { readonly error: string };

async function answer({ parameters, message }: HashTask): Promise<HashResult> {
  try {
    return { output: await computeSlowHash(parseStoredParameters(parameters), message) };
  } catch (error) {
    return { error: String(error) };
  } finally {
    message.fill(0);
  }
}

lowerThreadPriority();
parentPort?.on("message", async (task: HashTask) => parentPort?.postMessage(await answer(task)));

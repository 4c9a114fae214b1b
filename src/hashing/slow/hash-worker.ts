import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { raceSignal } from "../../lib/race-signal.ts";
import type { HashResult, HashTask } from "./worker.ts";

/** The program is TypeScript in a clone, and compiled in the package. */
const PROGRAM = new URL(import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js", import.meta.url);

/** In MiB. The memory of a hash is outside of the heap. */
const HEAP_LIMIT = 32;

/** A thread that computes one slow hash at a time. It does not keep the process alive. */
export class HashWorker {
  readonly #worker: Worker;
  readonly #ended = new AbortController();

  constructor(program = PROGRAM) {
    this.#worker = new Worker(program, {
      name: "slow-hashes",
      // The environment of the process may contain the root secret.
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_LIMIT },
    });
    this.#worker.unref();
    this.#worker.on("error", (cause) => this.#ended.abort(new Error("a hashing thread failed", { cause })));
    this.#worker.on("exit", () => this.#ended.abort(new Error("a hashing thread exited")));
  }

  /** Whether it can compute another hash. */
  get isAlive(): boolean {
    return !this.#ended.signal.aborted;
  }

  /** Returns the hash. Rejects if it cannot be computed or the thread ends. The task is transferred, so that no copy of the message remains. */
  async compute(task: HashTask): Promise<Uint8Array> {
    this.#worker.postMessage(task, [task.message.buffer]);
    const [result]: HashResult[] = await raceSignal(this.#ended.signal, once(this.#worker, "message"));
    if (result !== undefined && "output" in result) return result.output;
    throw new Error(`a slow hash could not be computed: ${result?.error}`);
  }

  /** Ends the thread, as soon as it has computed its hash. The hash is not returned. */
  async terminate(): Promise<void> {
    this.#ended.abort(new Error("a hashing thread was stopped"));
    await this.#worker.terminate();
  }
}

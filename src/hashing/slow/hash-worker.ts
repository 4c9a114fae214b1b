import { Worker } from "node:worker_threads";
import type { HashResult, HashTask } from "./worker.ts";

/** The program is TypeScript in a clone, and compiled in the package. */
const PROGRAM = new URL(import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js", import.meta.url);

/** In MiB. The memory of a hash is outside of the heap. */
const HEAP_LIMIT = 32;

/** A thread that computes one slow hash at a time. It does not keep the process alive. */
export class HashWorker {
  readonly #worker: Worker;
  #task: PromiseWithResolvers<Uint8Array> | null = null;
  #death: Error | null = null;

  constructor(program = PROGRAM) {
    this.#worker = new Worker(program, {
      name: "slow-hashes",
      // The environment of the process may contain the root secret.
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_LIMIT },
    });
    this.#worker.unref();
    this.#worker.on("message", (result: HashResult) => this.#settle(result));
    this.#worker.on("error", (error) => this.#die(new Error("a hashing thread failed", { cause: error })));
    this.#worker.on("exit", () => this.#die(new Error("a hashing thread exited")));
  }

  /** Whether it can compute another hash. */
  get isAlive(): boolean {
    return this.#death === null;
  }

  /** Returns the hash. Rejects if it cannot be computed or the thread ends. The task is transferred, so that no copy of the message remains. */
  compute(task: HashTask): Promise<Uint8Array> {
    if (this.#death !== null) return Promise.reject(this.#death);
    const settled = Promise.withResolvers<Uint8Array>();
    this.#task = settled;
    this.#worker.postMessage(task, [task.message.buffer]);
    return settled.promise;
  }

  /** Ends the thread, as soon as it has computed its hash. The hash is not returned. */
  async terminate(): Promise<void> {
    this.#die(new Error("a hashing thread was stopped"));
    await this.#worker.terminate();
  }

  #settle(result: HashResult): void {
    const task = this.#task;
    this.#task = null;
    if ("output" in result) task?.resolve(result.output);
    else task?.reject(new Error(`a slow hash could not be computed: ${result.error}`));
  }

  #die(error: Error): void {
    this.#death ??= error;
    this.#task?.reject(this.#death);
    this.#task = null;
  }
}

import { KeyholdError } from "../../domain/errors.ts";
import { type Monotonic, systemMonotonic } from "../../lib/clock.ts";
import { FairQueue } from "./fair-queue.ts";
import { HashWorker } from "./hash-worker.ts";
import type { HashTask } from "./worker.ts";

export interface HashQueueOptions {
  /** Milliseconds after which an idle thread ends. */
  readonly idleTimeout?: number;
  readonly startWorker?: () => HashWorker;
  readonly now?: Monotonic;
}

/** Hashes computed at a time. More would take more memory, and all cores of a small machine. */
const MAX_RUNNING = 2;

/** Hashes that may wait, by `Turn.suspicion`. */
const MAX_WAITING = [64, 64, 16] as const;
const IDLE_TIMEOUT = 30_000;

/** Milliseconds. A machine that is this slow cannot keep up, and a connection would be closed before its response. */
const MAX_WAIT = 10_000;

/** Decides which of several hashes is computed next. */
export interface Turn {
  /** How little a hash is worth waiting for: those with less are computed first, and have room of their own. */
  readonly suspicion: 0 | 1 | 2;
  /** Groups with the same suspicion take turns. */
  readonly group: string;
  /** When the hash was first tried: also before it was added, if it was rejected then. */
  readonly since: number;
}

interface Waiting extends Pick<Turn, "since"> {
  readonly task: HashTask;
  readonly settled: PromiseWithResolvers<Uint8Array>;
  readonly added: number;
}

/** Computes slow hashes in threads of its own, which start when they are first needed: two at a time. */
export class HashQueue {
  readonly #idleTimeout: number;
  readonly #startWorker: () => HashWorker;
  readonly #now: Monotonic;
  readonly #waiting = MAX_WAITING.map((max) => new FairQueue<Waiting>(max));
  /** With the timer that ends each. */
  readonly #idle = new Map<HashWorker, NodeJS.Timeout>();
  readonly #busy = new Set<HashWorker>();
  readonly #ending = new Set<Promise<void>>();
  #isClosed = false;

  constructor(options: HashQueueOptions = {}) {
    const { idleTimeout = IDLE_TIMEOUT, startWorker = () => new HashWorker(), now = systemMonotonic } = options;
    this.#idleTimeout = idleTimeout;
    this.#startWorker = startWorker;
    this.#now = now;
  }

  get running(): number {
    return this.#busy.size;
  }

  get waiting(): number {
    return this.#waiting.reduce((total, { size }) => total + size, 0);
  }

  /**
   * Returns the hash. Rejects with `OVERLOADED` if too many wait, or later if it is one of many of its group and another hash needs its place, or
   * if it has waited for ten seconds; and with any other error if it cannot be computed.
   */
  compute(task: HashTask, { suspicion, group, since }: Turn): Promise<Uint8Array> {
    if (this.#isClosed) return Promise.reject(stopping());
    const settled = Promise.withResolvers<Uint8Array>();
    const removed = this.#waiting[suspicion]?.add(group, { task, settled, since, added: this.#now() });
    if (removed !== undefined) reject(removed, overloaded());
    this.#startNext();
    return settled.promise;
  }

  /** Rejects what waits and what is computed, and resolves when all threads have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (let next = this.#shift(); next !== undefined; next = this.#shift()) reject(next, stopping());
    for (const worker of [...this.#idle.keys(), ...this.#busy]) this.#end(worker);
    await Promise.all(this.#ending);
  }

  #startNext(): void {
    while (this.#busy.size < MAX_RUNNING) {
      const next = this.#shift();
      if (next === undefined) return;
      if (this.#now() - next.added > MAX_WAIT) {
        reject(next, overloaded());
        continue;
      }
      const worker = this.#takeWorker();
      this.#busy.add(worker);
      worker
        .compute(next.task)
        .then(next.settled.resolve, (error) => next.settled.reject(this.#isClosed ? stopping() : error))
        .finally(() => {
          this.#busy.delete(worker);
          this.#release(worker);
          this.#startNext();
        });
    }
  }

  #shift(): Waiting | undefined {
    return this.#waiting.find(({ size }) => size > 0)?.shift();
  }

  #takeWorker(): HashWorker {
    for (const [worker, timer] of this.#idle) {
      clearTimeout(timer);
      this.#idle.delete(worker);
      if (worker.isAlive) return worker;
    }
    return this.#startWorker();
  }

  #release(worker: HashWorker): void {
    if (this.#isClosed || !worker.isAlive) return;
    this.#idle.set(worker, setTimeout(() => this.#end(worker), this.#idleTimeout).unref());
  }

  #end(worker: HashWorker): void {
    clearTimeout(this.#idle.get(worker));
    this.#idle.delete(worker);
    const ending = worker.terminate().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}

function reject({ task, settled }: Waiting, error: KeyholdError): void {
  task.message.fill(0);
  settled.reject(error);
}

function overloaded(): KeyholdError {
  return new KeyholdError("OVERLOADED", "too many calls are waiting for slow hashes of imported keys; retry after 1 s");
}

function stopping(): KeyholdError {
  return new KeyholdError("OVERLOADED", "the server is stopping; retry after 1 s");
}

import { randomUUID } from "node:crypto";
import type { Monotonic } from "../lib/clock.ts";
import { UNITS, type UsageCounter, type UsageRow } from "./counter.ts";

/** Counts that are stored in one transaction, at most once: its process and id identify it. */
export interface Flush {
  readonly processId: string;
  /** Greater than that of each earlier flush of the process. */
  readonly id: number;
  readonly rows: readonly UsageRow[];
}

/** Stores usage. */
export interface UsageStore {
  /** Adds counts to the current hour by the clock of the database, unless it has. */
  flush(flush: Flush): Promise<void>;
  /** Creates and drops partitions, and returns whether it should be called again. `retention` is in milliseconds. */
  maintain(retention: number): Promise<boolean>;
}

/** Rows of one transaction: some 20 ms. */
const MAX_ROWS = 2_000;

/** Milliseconds. */
const MAINTENANCE_INTERVAL = 3_600_000;

export interface FlusherOptions {
  readonly counter: UsageCounter;
  readonly store: UsageStore;
  readonly retention: number;
  readonly monotonic: Monotonic;
}

/** Stores what a counter has counted. */
export class UsageFlusher {
  readonly #options: FlusherOptions;
  readonly #processId = randomUUID();
  #nextId = 1;
  /** Taken from the counter and not known to be stored. A flush that has failed may be stored, so it is repeated as it is. */
  #pending: Flush[] = [];
  /** When maintenance is due. A failed flush may lack its partition. */
  #maintenanceTime = Number.NEGATIVE_INFINITY;
  /** The verifications that were stored. */
  stored = 0;

  constructor(options: FlusherOptions) {
    this.#options = options;
  }

  /** Rows that wait to be stored. */
  get waiting(): number {
    return this.#options.counter.size + this.#pending.reduce((sum, { rows }) => sum + rows.length, 0);
  }

  /** Stores everything that was counted before the call. On failure the counts are kept for the next call. */
  async run(): Promise<void> {
    try {
      await this.#maintain();
      await this.#flushPending();
      this.#take();
      await this.#flushPending();
    } catch (error) {
      this.#maintenanceTime = Number.NEGATIVE_INFINITY;
      throw error;
    }
  }

  async #maintain(): Promise<void> {
    const { store, retention, monotonic } = this.#options;
    if (monotonic() < this.#maintenanceTime) return;
    const isUnfinished = await store.maintain(retention);
    this.#maintenanceTime = isUnfinished ? Number.NEGATIVE_INFINITY : monotonic() + MAINTENANCE_INTERVAL;
  }

  async #flushPending(): Promise<void> {
    for (let next = this.#pending[0]; next !== undefined; next = this.#pending[0]) {
      await this.#options.store.flush(next);
      this.#pending.shift();
      this.stored += next.rows.reduce((sum, { outcome, count }) => (outcome.startsWith(UNITS) ? sum : sum + count), 0);
    }
  }

  #take(): void {
    const rows = this.#options.counter.take();
    for (let start = 0; start < rows.length; start += MAX_ROWS) {
      const part = rows.slice(start, start + MAX_ROWS);
      this.#pending.push({ processId: this.#processId, id: this.#nextId++, rows: part });
    }
  }
}

import type { CallRecord } from "./event.ts";

/** A limit that has denied a call or a verification. */
export interface ExceededLimit {
  /** Identifies the limit and its owner. */
  readonly bucket: string;
  readonly limit: string;
  /** The owner of a limit of a key or actor. */
  readonly keyId?: string;
  readonly actorId?: string;
  /** The call that has exceeded a limit of Keyhold. */
  readonly call?: CallRecord;
  readonly details: Readonly<Record<string, unknown>>;
  /** Milliseconds in which there is no other event, or the time until which there is none, since the epoch. */
  readonly period: number;
  readonly endTime?: number;
}

/** Milliseconds for which this node does not mention a limit again. The database knows how long there is no other event. */
const INTERVAL = 3_600_000;

/** Limits that were exceeded and are not recorded yet: each once an hour, of a bounded number. */
export class ExceededLimits {
  readonly #maxBuckets: number;
  /** By bucket, the earliest first. */
  readonly #nextTimes = new Map<string, number>();
  #waiting: ExceededLimit[] = [];
  /** Denials of limits that are in no event, because there were too many limits. */
  dropped = 0;

  constructor(maxBuckets: number) {
    this.#maxBuckets = maxBuckets;
  }

  /** `now` is in milliseconds. */
  add(bucket: string, now: number, describe: () => Omit<ExceededLimit, "bucket">): void {
    if (this.#nextTimes.has(bucket)) return;
    if (this.#nextTimes.size >= this.#maxBuckets) {
      this.dropped++;
      return;
    }
    this.#nextTimes.set(bucket, now + INTERVAL);
    this.#waiting.push({ bucket, ...describe() });
  }

  /** Records what waits. It waits further if that fails. */
  async record(now: number, write: (exceeded: readonly ExceededLimit[]) => Promise<void>): Promise<void> {
    for (const [bucket, time] of this.#nextTimes) {
      if (time > now) break;
      this.#nextTimes.delete(bucket);
    }
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    try {
      await write(waiting);
    } catch (error) {
      this.#waiting = [...waiting, ...this.#waiting];
      throw error;
    }
  }
}

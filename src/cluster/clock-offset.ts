import type { Clock, Monotonic } from "../lib/clock.ts";
import type { Moment } from "./lease.ts";

/** A difference from which on it is reported, in milliseconds. */
export const REPORTED_OFFSET = 1_000;

/** Measures by how much the clock of this node differs from the database's, by the times that the database returns. */
export class ClockOffset {
  readonly #clock: Clock;
  readonly #monotonic: Monotonic;
  /** The last time of the database, when it was received, and the bounds of the offset then; positive: this clock is ahead. */
  #last: { readonly time: number; readonly received: number; readonly min: number; readonly max: number } | null = null;

  constructor(clock: Clock, monotonic: Monotonic) {
    this.#clock = clock;
    this.#monotonic = monotonic;
  }

  /** Records a time of the database that was just received, in the answer to a statement that was sent at `sent`. */
  observe(time: number, sent: Pick<Moment, "wall">): void {
    this.#last = { time, received: this.#monotonic(), min: sent.wall - time, max: this.#clock.now() - time };
  }

  /** Returns the measured offset that is nearest to 0; null before the first measurement. */
  get least(): number | null {
    if (this.#last === null) return null;
    const { min, max } = this.#last;
    return Math.max(0, min) + Math.min(0, max);
  }

  /**
   * Returns the most by which this clock may be ahead now; null before the first measurement. A clock that was stepped since the measurement
   * is noticed, because the time since then is measured by the monotonic clock.
   */
  get ahead(): number | null {
    if (this.#last === null) return null;
    return this.#clock.now() - (this.#last.time + this.#monotonic() - this.#last.received);
  }
}

import type { Clock } from "../lib/clock.ts";
import type { Monotonic } from "../lib/monotonic.ts";

/**
 * Which part of the time of a lease its own node uses, and after which part the others may take it away. Between the two there
 * is room for clocks that run at different rates: 5 % of a second's length, where quartz differs by 0.01 %.
 */
export const USED_PART = 0.9;
export const WAITED_PART = 0.95;

/** The right of this node to answer from memory: until a time that it measures itself. */
export class Lease {
  readonly #monotonic: Monotonic;
  readonly #clock: Clock;
  #end = Number.NEGATIVE_INFINITY;
  #wallEnd = Number.NEGATIVE_INFINITY;
  #granted: number | null = null;

  constructor(monotonic: Monotonic, clock: Clock) {
    this.#monotonic = monotonic;
    this.#clock = clock;
  }

  /**
   * The monotonic clock of Linux stands still while a machine is suspended; the other one is set right when it wakes. If either
   * says that the time is over, it is. A wall clock that steps forward costs reads until the next renewal, and nothing else.
   */
  get isFresh(): boolean {
    return this.#monotonic() < this.#end && this.#clock.now() < this.#wallEnd;
  }

  /** Milliseconds since the last renewal that was granted was sent; null if none was. */
  get age(): number | null {
    return this.#granted === null ? null : this.#monotonic() - this.#granted;
  }

  /** When a renewal would be sent now. */
  get moment(): Moment {
    return { monotonic: this.#monotonic(), wall: this.#clock.now() };
  }

  /** A renewal that was sent at this moment was granted for `ttl` milliseconds. */
  extend(sent: Moment, ttl: number): void {
    this.#granted = sent.monotonic;
    this.#end = sent.monotonic + ttl * USED_PART;
    this.#wallEnd = sent.wall + ttl * USED_PART;
  }

  end(): void {
    this.#end = Number.NEGATIVE_INFINITY;
  }
}

/** One moment by both clocks, in milliseconds. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

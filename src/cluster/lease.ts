import type { Clock, Monotonic } from "../lib/clock.ts";

/**
 * Fraction of the TTL during which the owner uses its lease, and after which other nodes may delete it. The margin allows for different
 * clock rates: 5 % of one second, where quartz oscillators differ by 0.01 %.
 */
export const USED_PART = 0.9;
export const WAITED_PART = 0.95;

/** The right of this node to answer from its cache, until a time by its own clocks. */
export class Lease {
  readonly #monotonic: Monotonic;
  readonly #clock: Clock;
  readonly #staleGrace: number;
  #end = Number.NEGATIVE_INFINITY;
  #wallEnd = Number.NEGATIVE_INFINITY;
  #granted: number | null = null;
  #grants = 0;

  /** `staleGrace`: milliseconds after the lease during which cached verdicts may be used, marked as stale (`KEYHOLD_STALE_GRACE`). */
  constructor(monotonic: Monotonic, clock: Clock, staleGrace = 0) {
    this.#monotonic = monotonic;
    this.#clock = clock;
    this.#staleGrace = staleGrace;
  }

  /**
   * Linux' monotonic clock stops while a machine is suspended; the wall clock is corrected on wake-up. The lease has ended if either
   * clock says so. A wall clock that steps forward only costs reads until the next renewal.
   */
  get isFresh(): boolean {
    return this.#monotonic() < this.#end && this.#clock.now() < this.#wallEnd;
  }

  /**
   * Whether the lease has ended no longer ago than the grace. A change that this node has not received can have returned only after the
   * lease ended, so a cached verdict is outdated by at most the grace.
   */
  get isInStaleGrace(): boolean {
    if (this.#staleGrace === 0 || this.isFresh) return false;
    return this.#monotonic() < this.#end + this.#staleGrace && this.#clock.now() < this.#wallEnd + this.#staleGrace;
  }

  /** Milliseconds since the last granted renewal was sent; null if there was none. */
  get age(): number | null {
    return this.#granted === null ? null : this.#monotonic() - this.#granted;
  }

  /** Number of granted renewals. */
  get grants(): number {
    return this.#grants;
  }

  /** The current time by both clocks. */
  get moment(): Moment {
    return { monotonic: this.#monotonic(), wall: this.#clock.now() };
  }

  /** Records that a renewal sent at `sent` was granted for `ttl` milliseconds. */
  extend(sent: Moment, ttl: number): void {
    this.#granted = sent.monotonic;
    this.#grants++;
    this.#end = sent.monotonic + ttl * USED_PART;
    this.#wallEnd = sent.wall + ttl * USED_PART;
  }

  end(): void {
    this.#end = Math.min(this.#end, this.#monotonic());
    this.#wallEnd = Math.min(this.#wallEnd, this.#clock.now());
  }
}

/** A time by both clocks, in milliseconds. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

import type { Clock, Monotonic } from "../lib/clock.ts";

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
  readonly #staleGrace: number;
  #end = Number.NEGATIVE_INFINITY;
  #wallEnd = Number.NEGATIVE_INFINITY;
  #granted: number | null = null;
  #grants = 0;

  /** `staleGrace`: milliseconds for which what is in memory may be used after the lease (`KEYHOLD_STALE_GRACE`). */
  constructor(monotonic: Monotonic, clock: Clock, staleGrace = 0) {
    this.#monotonic = monotonic;
    this.#clock = clock;
    this.#staleGrace = staleGrace;
  }

  /**
   * The monotonic clock of Linux stands still while a machine is suspended; the other one is set right when it wakes. If either
   * says that the time is over, it is. A wall clock that steps forward costs reads until the next renewal, and nothing else.
   */
  get isFresh(): boolean {
    return this.#monotonic() < this.#end && this.#clock.now() < this.#wallEnd;
  }

  /**
   * Whether the lease is over, and for no longer than the grace: a change that this node has not heard of was answered when the lease was
   * over, so that what is in memory is late by the grace at the most.
   */
  get isInStaleGrace(): boolean {
    if (this.#staleGrace === 0 || this.isFresh) return false;
    return this.#monotonic() < this.#end + this.#staleGrace && this.#clock.now() < this.#wallEnd + this.#staleGrace;
  }

  /** Milliseconds since the last renewal that was granted was sent; null if none was. */
  get age(): number | null {
    return this.#granted === null ? null : this.#monotonic() - this.#granted;
  }

  /** How many renewals were granted. */
  get grants(): number {
    return this.#grants;
  }

  /** When a renewal would be sent now. */
  get moment(): Moment {
    return { monotonic: this.#monotonic(), wall: this.#clock.now() };
  }

  /** A renewal that was sent at this moment was granted for `ttl` milliseconds. */
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

/** One moment by both clocks, in milliseconds. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

import type { LimitStatus, RateLimit } from "../domain/rate-limit.ts";
import { Demand } from "./demand.ts";
import type { Grant, GrantRequest } from "./grants.ts";
import type { Admission, SharedBucket } from "./shared-bucket.ts";

/** Tokens may be spent for this part of the window, at most this long (milliseconds) after they were requested. */
const LIFETIME = { part: 0.05, max: 1_000 };

/**
 * While more is presented than the limit admits, tokens are requested no sooner than half the burst has refilled, at most these milliseconds: the
 * next few would be gone before the next request.
 */
const MAX_PAUSE = 100;

/** The part of the burst that all nodes together may admit before they charge it. */
const DEBT_PART = 0.05;

/** The part of the lifetime for which requests are gathered: what is left of a lease when they are made lasts several times as long. */
const DELAY_PART = 0.05;

/** With fewer verifications in half the lifetime, tokens are requested one by one: most of a batch would expire. */
const MIN_BATCH = 4;

interface Lease {
  tokens: number;
  /** Exclusive, monotonic milliseconds. */
  readonly end: number;
}

/**
 * The bucket of a rate limit (docs/limits.md): tokens that this node has leased, and a level below which the shared bucket cannot be. It admits a
 * small debt before it is charged.
 */
export class Bucket implements SharedBucket {
  /** Of the shared bucket. */
  readonly name: string;
  #limit!: RateLimit;
  /** Tokens per millisecond. */
  #rate!: number;
  #lifetime!: number;
  /** The oldest first. */
  #leases: Lease[] = [];
  /** The level of the shared bucket at `#levelTime`; null: unknown. */
  #level: number | null = null;
  #levelTime = 0;
  /** Until when nothing is requested. */
  #pauseEnd = 0;
  /** Tokens that were spent without a lease, and are not known to be charged. */
  #debt = 0;
  isLate = false;
  /** Whether it waits for an answer of the shared bucket, or to be asked about. */
  isRequested = false;
  /** In half a lifetime. */
  #demand!: Demand;

  constructor(name: string, limit: RateLimit) {
    this.name = name;
    this.#change(limit);
  }

  get limit(): RateLimit {
    return this.#limit;
  }

  /** A limit that was changed keeps its debt: what was leased by the earlier one is void, also for verifications that wait. */
  accept(limit: RateLimit): void {
    const own = this.#limit;
    if (own === limit) return;
    const isSameBucket = own.quota === limit.quota && own.window === limit.window && own.burst === limit.burst;
    if (isSameBucket) this.#limit = limit;
    else this.#change(limit);
  }

  #change(limit: RateLimit): void {
    this.#limit = limit;
    this.#rate = limit.quota / limit.window;
    this.#lifetime = Math.min(limit.window * LIFETIME.part, LIFETIME.max);
    this.#demand = new Demand(this.#lifetime / 2);
    [this.#leases, this.#level, this.#pauseEnd] = [[], null, 0];
  }

  /** Counts a cost that is presented, whether it will be admitted or not. */
  present(cost: number, now: number): void {
    this.#demand.add(cost, now);
  }

  /** Returns how a cost is answered. `nodes` is their number; null: unknown, so that nothing is admitted before it is charged. */
  admission(cost: number, now: number, nodes: number | null): Admission {
    if (cost === 0) return this.#level === null ? "UNKNOWN" : "ADMITTED";
    if (this.#tokens(now) >= cost) return "ADMITTED";
    if (this.retryAfter(cost, now) > 0) return "DENIED";
    return this.#debt + cost <= this.#maxDebt(nodes) ? "ADMITTED" : "UNKNOWN";
  }

  #maxDebt(nodes: number | null): number {
    const { burst } = this.limit;
    if (this.isShadow) return burst;
    return nodes === null ? 0 : Math.floor((DEBT_PART * burst) / (2 * nodes));
  }

  /** Spends an admitted cost. */
  spend(cost: number, now: number): void {
    if (this.#tokens(now) < cost) {
      this.#debt += cost;
      return;
    }
    let left = cost;
    for (const lease of this.#leases) {
      const taken = Math.min(lease.tokens, left);
      lease.tokens -= taken;
      left -= taken;
    }
  }

  #tokens(now: number): number {
    let first = this.#leases[0];
    while (first !== undefined && (first.end <= now || first.tokens === 0)) {
      this.#leases.shift();
      first = this.#leases[0];
    }
    let sum = 0;
    for (const { tokens } of this.#leases) sum += tokens;
    return sum;
  }

  /** Returns the milliseconds for which a cost is certainly not admitted; 0: it may be; infinite: it is larger than the bucket. */
  retryAfter(cost: number, now: number): number {
    const { burst } = this.limit;
    if (cost > burst) return Number.POSITIVE_INFINITY;
    const level = (this.#levelAt(now) ?? 0) + this.#debt;
    return Math.max((level + cost - burst) / this.#rate, this.#pauseEnd - now, 0);
  }

  /** No other node can have drained the shared bucket further. */
  #levelAt(now: number): number | null {
    return this.#level === null ? null : Math.max(0, this.#level - this.#rate * (now - this.#levelTime));
  }

  /** A debt is charged soon if it is most of what this node may owe, or if nothing is known of the bucket. */
  wantsMore(now: number, nodes: number | null): boolean {
    if (this.#debt > 0 && (this.#level === null || 2 * this.#debt > this.#maxDebt(nodes))) return true;
    const batch = this.#batch(now, nodes);
    const isLow = 2 * this.#tokens(now) <= Math.min(batch, this.#demand.expected(now));
    return batch > 0 && isLow && this.retryAfter(1, now) === 0;
  }

  /** Returns what to request now, if costs wait for this many tokens. */
  request(waiting: number, now: number, nodes: number | null): GrantRequest {
    const { name: bucket } = this;
    const wanted = waiting + this.#batch(now, nodes);
    return { bucket, burst: this.limit.burst, rate: this.#rate, wanted, owed: this.#debt };
  }

  /**
   * Returns the tokens to lease beyond those that wait: what will be used within half their lifetime, or within all of it while most of the bucket
   * is left, so that those that expire unused deny nobody.
   */
  #batch(now: number, nodes: number | null): number {
    const { burst } = this.limit;
    const demand = this.#demand.expected(now);
    const free = burst - (this.#levelAt(now) ?? burst);
    const parts = free > Math.max(8 * demand, burst / 2) ? 2 : 1;
    if (parts * demand < MIN_BATCH) return 0;
    return Math.min(parts * demand, Math.floor(burst / (2 * (nodes ?? 1))));
  }

  /** Takes a grant for what `request` has returned at `sent`. */
  take({ granted, level }: Grant, { wanted, owed, burst, rate }: GrantRequest, sent: number, now: number): void {
    this.#debt -= owed;
    if (burst !== this.limit.burst || rate !== this.#rate) return;
    [this.#level, this.#levelTime] = [level, sent];
    const end = sent + this.#lifetime;
    this.isLate = granted > 0 && end <= now;
    if (granted > 0) this.#leases.push({ tokens: granted, end });
    if (granted < wanted && this.#isExceeded(now))
      this.#pauseEnd = now + Math.min(MAX_PAUSE, this.limit.burst / 2 / this.#rate);
  }

  /** Returns whether more is presented than the limit admits in the long run. */
  #isExceeded(now: number): boolean {
    return this.#demand.expected(now) > (this.#rate * this.#lifetime) / 2;
  }

  /** Tokens expire too soon. */
  release(): null {
    return null;
  }

  get delay(): number {
    return this.#lifetime * DELAY_PART;
  }

  get isShadow(): boolean {
    return this.limit.enforcement === "SHADOW";
  }

  get owes(): boolean {
    return this.#debt > 0;
  }

  /** Whether it must be kept. */
  get isBusy(): boolean {
    return this.owes || this.isRequested;
  }

  /** Returns whether nothing would be lost with the bucket. */
  isIdle(now: number): boolean {
    return !this.isBusy && this.#tokens(now) === 0 && this.retryAfter(1, now) === 0;
  }

  /** Returns the state after a verification of this cost, at `time` in milliseconds since the epoch. */
  status(cost: number, isExceeded: boolean, now: number, time: number): LimitStatus {
    const { limit } = this;
    const level = this.#levelAt(now);
    const used = level === null ? null : Math.max(0, level + this.#debt - this.#tokens(now));
    const retryAfter = this.retryAfter(Math.max(cost, 1), now);
    const remaining = used === null ? null : Math.max(0, Math.floor(limit.burst - used));
    const isEmpty = (isExceeded || remaining === 0) && !this.isShadow;
    return {
      limit,
      cost,
      remaining,
      resetTime: used === null ? null : time + used / this.#rate,
      retryAfter: isEmpty && Number.isFinite(retryAfter) ? retryAfter : null,
      isExceeded,
    };
  }
}

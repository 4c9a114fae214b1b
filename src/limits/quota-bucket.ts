import type { LimitStatus, Quota } from "../domain/rate-limit.ts";
import { Demand } from "./demand.ts";
import type { Grant, GrantRequest, Return } from "./grants.ts";
import type { Admission, SharedBucket } from "./shared-bucket.ts";

/** Milliseconds for whose demand tokens are leased. */
const HORIZON = 1_000;

/** Milliseconds for which requests are gathered: as for a rate limit whose tokens live as long as `HORIZON`. */
const DELAY = 50;

/** All nodes together hold at most this part of what is left beyond what waits, so that the last of it is not divided among them. */
const BATCH_PART = 0.05;

/** With less demand, tokens are requested one by one. */
const MIN_BATCH = 4;

/** Milliseconds without a verification after which leased tokens are returned. */
const IDLE_TIME = 10_000;

/** The bucket of a quota: tokens that are leased are charged, and those that a crash loses come back at the end of the period. */
export class QuotaBucket implements SharedBucket {
  readonly name: string;
  #limit: Quota;
  readonly isShadow = false;
  readonly isLate = false;
  readonly owes = false;
  readonly delay = DELAY;
  isRequested = false;
  readonly #demand = new Demand(HORIZON);
  /** Leased and not spent. */
  #tokens = 0;
  /** What all nodes have been granted in the period, or more. */
  #used = 0;
  /** Tokens are void and nothing is known from then on, in monotonic milliseconds. */
  #end = Number.NEGATIVE_INFINITY;
  /** The same by the clock of the database, in milliseconds since the epoch. */
  #resetTime = 0;
  #presented = 0;
  #asked = 0;
  /** Tokens that were granted before the quota changed, and the end of their period: they are returned. */
  #surplus = { tokens: 0, resetTime: 0 };
  /** Whether the quota has changed since the last request. */
  #isChanged = false;
  /** Whether the last request has no answer: what it was granted may be lost. */
  #isUnanswered = false;

  constructor(name: string, limit: Quota) {
    this.name = name;
    this.#limit = limit;
  }

  get limit(): Quota {
    return this.#limit;
  }

  get isBusy(): boolean {
    return this.isRequested || this.#tokens > 0 || this.#surplus.tokens > 0;
  }

  /** What was leased before a change is returned, also what a request in flight will be granted. */
  accept(limit: Quota): void {
    const own = this.#limit;
    if (own === limit) return;
    const isSamePeriod = own.period === limit.period && own.anchorTime === limit.anchorTime;
    this.#limit = limit;
    if (isSamePeriod && own.limit === limit.limit && own.adjustTime === limit.adjustTime) return;
    this.#discard(this.#tokens, this.#resetTime);
    [this.#tokens, this.#end, this.#isChanged] = [0, Number.NEGATIVE_INFINITY, true];
  }

  #discard(tokens: number, resetTime: number): void {
    const earlier = this.#surplus.resetTime === resetTime ? this.#surplus.tokens : 0;
    this.#surplus = { tokens: earlier + tokens, resetTime };
  }

  present(cost: number, now: number): void {
    this.#presented = now;
    this.#demand.add(cost, now);
  }

  admission(cost: number, now: number): Admission {
    if (now >= this.#end) return cost > this.limit.limit ? "DENIED" : "UNKNOWN";
    if (this.#tokens >= cost) return "ADMITTED";
    const isUsedUp = this.#used + cost - this.#tokens > this.limit.limit;
    // Other nodes may have returned tokens since.
    return isUsedUp && now - this.#asked < IDLE_TIME ? "DENIED" : "UNKNOWN";
  }

  spend(cost: number): void {
    this.#tokens -= cost;
  }

  wantsMore(now: number, nodes: number | null): boolean {
    return 2 * this.#tokens < this.#batch(now, nodes);
  }

  /** Returns the tokens to hold beyond those that wait: none while the number of nodes is unknown, and after a failure, which may be repeated. */
  #batch(now: number, nodes: number | null): number {
    if (now >= this.#end || nodes === null || this.#isUnanswered) return 0;
    const demand = this.#demand.expected(now);
    const left = Math.floor(((this.limit.limit - this.#used) * BATCH_PART) / nodes);
    return demand < MIN_BATCH ? 0 : Math.max(0, Math.min(demand, left));
  }

  request(waiting: number, now: number, nodes: number | null): GrantRequest {
    const { limit: burst, period, anchorTime } = this.limit;
    this.#isChanged = false;
    // Others may spend before the answer what is unspent now.
    const wanted = waiting + Math.max(0, this.#batch(now, nodes) - this.#unspent(now));
    this.#isUnanswered = true;
    return { bucket: this.name, burst, rate: 0, calendar: { period, anchorTime }, wanted, owed: 0 };
  }

  #unspent(now: number): number {
    return now >= this.#end ? 0 : this.#tokens;
  }

  take({ granted, level, reset }: Grant, _: GrantRequest, sent: number): void {
    this.#isUnanswered = false;
    if (reset === undefined) return;
    if (this.#isChanged) {
      this.#discard(granted, reset.time);
      return;
    }
    if (reset.time !== this.#resetTime) this.#tokens = 0;
    this.#tokens += granted;
    [this.#used, this.#resetTime, this.#end, this.#asked] = [level, reset.time, sent + reset.after, sent];
  }

  release(now: number, isStopping: boolean): Return | null {
    if (this.#surplus.tokens > 0) return this.#releaseSurplus();
    const tokens = this.#unspent(now);
    this.#tokens = tokens;
    if (tokens === 0 || this.isRequested || !(isStopping || now - this.#presented > IDLE_TIME)) return null;
    this.#tokens = 0;
    this.#used -= tokens;
    return { bucket: this.name, tokens, resetTime: this.#resetTime };
  }

  #releaseSurplus(): Return {
    const surplus = { bucket: this.name, ...this.#surplus };
    this.#surplus = { tokens: 0, resetTime: 0 };
    return surplus;
  }

  isIdle(now: number): boolean {
    return !this.isBusy && this.#unspent(now) === 0 && (now >= this.#end || this.#used < this.limit.limit);
  }

  status(cost: number, isExceeded: boolean, now: number): LimitStatus {
    const isKnown = now < this.#end;
    const remaining = isKnown ? Math.max(0, this.limit.limit - this.#used + this.#tokens) : null;
    return {
      limit: this.limit,
      cost,
      remaining,
      resetTime: isKnown ? this.#resetTime : null,
      retryAfter: isKnown && (isExceeded || remaining === 0) ? this.#end - now : null,
      isExceeded,
    };
  }
}

import { KeyholdError } from "../../domain/errors.ts";
import { callerName, type Principal } from "../../domain/principal.ts";
import { memoizable } from "../../lib/memoize.ts";
import { networkOf } from "../../lib/network.ts";

/**
 * Maximum of waiting calls in units: a call is one, a batch one per ten items, which is about their cost. One process completes about
 * 5,000 per second, so 1,000 units, the share of a single caller, are 0.2 s of work and 20 MB. A larger value would only increase latency:
 * 64 calls keep one process busy, and a service with 437 clients has about 300 waiting.
 */
const MAX_UNITS = 1_333;

/** As many revocations as the reserved connections to the database complete in a second. */
const RESERVED_UNITS = 400;

/**
 * A caller may hold at most this many times what is free: three quarters of the capacity if it is alone, three sevenths each of two.
 * Something is free for the next caller, without a list of callers or a configured share.
 */
const SHARE = 3;

/** Memoizable: a stack and a response for each rejection would cost as much as the work that it avoids. */
export const OVERLOADED = memoizable(new KeyholdError("OVERLOADED", "the server is overloaded; retry after 1 s"));

/**
 * Load shedding: bounds the calls of this process that wait for the database or for an issuer of access tokens, in all and for each
 * caller. A call that is answered from the cache within one tick is never counted and never rejected, because rejecting it would cost as
 * much.
 */
export class ConcurrencyLimiter {
  readonly max: number;
  /** Units that wait now. */
  units = 0;
  /** Units by caller. */
  readonly #held = new Map<string, number>();
  /** Shared with its reserves. */
  readonly #counts: { rejections: number };

  constructor(max = MAX_UNITS, counts = { rejections: 0 }) {
    this.max = max;
    this.#counts = counts;
  }

  /** Returns a limiter with capacity of its own, for calls that must be served while all others are rejected. */
  reserve(): ConcurrencyLimiter {
    return new ConcurrencyLimiter(RESERVED_UNITS, this.#counts);
  }

  /** Calls that were rejected with OVERLOADED, here, in a reserve or further down. */
  get rejections(): number {
    return this.#counts.rejections;
  }

  countRejection(): void {
    this.#counts.rejections++;
  }

  /** Rejects work that is known to wait before it starts; without a caller, only that of any caller. Throws `OVERLOADED`. */
  assertCapacity(caller?: string): void {
    const free = this.max - this.units;
    const held = caller === undefined ? 0 : (this.#held.get(caller) ?? 0);
    if (free <= 0 || held >= free * SHARE) throw OVERLOADED;
  }

  /** Counts work of a caller until it ends. Above the limit its result is dropped: only for work without side effects. */
  async track<T>(work: Promise<T>, caller: string, units = 1): Promise<T> {
    try {
      this.assertCapacity(caller);
    } catch (error) {
      work.catch(() => undefined);
      throw error;
    }
    this.#add(caller, units);
    try {
      return await work;
    } finally {
      this.#add(caller, -units);
    }
  }

  #add(caller: string, units: number): void {
    const held = (this.#held.get(caller) ?? 0) + units;
    this.units += units;
    if (held === 0) this.#held.delete(caller);
    else this.#held.set(caller, held);
  }
}

/** Returns the name under which calls of this principal are counted: its own, or without a credential the network of its address. */
export function countedCaller(principal: Principal): string {
  return principal.method === "none" ? networkOf(principal.clientAddress) : callerName(principal);
}

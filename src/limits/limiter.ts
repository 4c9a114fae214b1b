import { type Charge, type Charged, isQuota, isRateLimit, type Limit, type LimitStatus } from "../domain/rate-limit.ts";
import type { Valid } from "../domain/verdict.ts";
import type { Clock } from "../lib/clock.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";
import { Borrower, type BorrowerOptions, type BorrowerStats } from "./borrower.ts";
import { Bucket } from "./bucket.ts";
import type { Return, ReturnTokens } from "./grants.ts";
import { QuotaBucket } from "./quota-bucket.ts";
import type { Admission, SharedBucket } from "./shared-bucket.ts";

export interface LimiterOptions extends BorrowerOptions {
  readonly returnTokens: ReturnTokens;
  readonly clock: Clock;
  /** Called for each limit that is checked: whether it denies the verification, or would, were it enforced. */
  readonly onOutcome?: (limit: Limit, isExceeded: boolean) => void;
  /** Called for each verification that a limit admits because the database is unreachable. */
  readonly onOutage?: (error: unknown) => void;
}

/** The limits that a valid credential is subject to. */
export type Limited = Pick<Valid, "keyId" | "keyLimits" | "actorLimits">;

/** A limit of a key as its bucket, and what a verification costs by it. */
interface Item {
  readonly bucket: SharedBucket;
  readonly cost: number;
  admission: Admission;
}

/** Buckets kept, about 400 bytes each. Of one that is dropped nothing is known when it is next used. */
const MAX_BUCKETS = 100_000;

/** The part that is kept when there are too many, so that not every new one searches for others to drop. */
const KEPT_PART = 0.9;

/** Milliseconds between two searches for buckets that need not be kept. */
const SWEEP_INTERVAL = 5_000;

/** Times that a verification waits for tokens which others of this node then take. */
const MAX_WAITS = 3;

/** The limits of keys on this node (docs/limits.md). */
export class Limiter {
  readonly #options: LimiterOptions;
  readonly #borrower: Borrower;
  readonly #buckets = new Map<string, SharedBucket>();
  #swept = Number.NEGATIVE_INFINITY;

  constructor(options: LimiterOptions) {
    this.#options = options;
    this.#borrower = new Borrower(options);
  }

  /** Number of buckets that this node knows. */
  get size(): number {
    return this.#buckets.size;
  }

  /** What was requested of the shared buckets since the start. */
  get stats(): Readonly<BorrowerStats> {
    return this.#borrower.stats;
  }

  /**
   * Checks all limits of a key and of its actor, and charges all of them if they admit the verification. Synchronous unless tokens have to be
   * requested first. Rejects if the database does not grant any, and a limit denies verifications then.
   */
  charge({ keyId, keyLimits, actorLimits }: Limited, charges: readonly Charge[] = []): MaybePromise<Charged> {
    const items: Item[] = [];
    if (keyLimits !== null) this.#present(items, `key/${keyId}`, keyLimits, charges);
    if (actorLimits !== undefined) this.#present(items, `actor/${actorLimits.actorId}`, actorLimits.limits, charges);
    return this.#attempt(items, MAX_WAITS);
  }

  /** Charges what was spent and is not charged yet, and returns tokens of quotas that are not used; all of them if the node stops. */
  async flush(isStopping: boolean): Promise<void> {
    await this.#borrower.flush();
    const now = this.#options.monotonic();
    const returns: Return[] = [];
    for (const bucket of this.#buckets.values()) {
      const returned = bucket.release(now, isStopping);
      if (returned !== null) returns.push(returned);
    }
    if (returns.length > 0) await this.#options.returnTokens(returns);
  }

  #present(items: Item[], owner: string, limits: readonly Limit[], charges: readonly Charge[]): void {
    const now = this.#options.monotonic();
    for (const limit of limits) {
      const cost =
        charges.find(({ name }) => name === limit.name)?.cost ?? (isRateLimit(limit) && limit.onDemand ? undefined : 1);
      if (cost === undefined) continue;
      const bucket = this.#bucketOf(`${owner}/${limit.name}${isQuota(limit) ? "/quota" : ""}`, limit, now);
      bucket.present(cost, now);
      items.push({ bucket, cost, admission: "UNKNOWN" });
    }
  }

  #attempt(items: readonly Item[], waits: number): MaybePromise<Charged> {
    const { monotonic, nodes } = this.#options;
    const [now, others] = [monotonic(), nodes()];
    let isDenied = false;
    const unknown: Item[] = [];
    for (const item of items) {
      item.admission = item.bucket.admission(item.cost, now, others);
      if (item.admission === "UNKNOWN" && (item.bucket.isShadow || waits === 0)) item.admission = "DENIED";
      if (item.admission === "UNKNOWN") unknown.push(item);
      else if (item.admission === "DENIED" && !item.bucket.isShadow) isDenied = true;
    }
    if (!isDenied && unknown.length > 0) return this.#wait(items, unknown, waits - 1);
    return this.#conclude(items, isDenied, now, others);
  }

  async #wait(items: readonly Item[], unknown: readonly Item[], waits: number): Promise<Charged> {
    const unlimited = new Set<Item>();
    const borrow = async (item: Item) => {
      try {
        await this.#borrower.borrow(item.bucket, item.cost);
      } catch (error) {
        if (!item.bucket.allowsOutage) throw error;
        this.#options.onOutage?.(error);
        unlimited.add(item);
      }
    };
    await Promise.all(unknown.map(borrow));
    return this.#attempt(
      items.filter((item) => !unlimited.has(item)),
      waits,
    );
  }

  #conclude(items: readonly Item[], isDenied: boolean, now: number, nodes: number | null): Charged {
    const statuses: LimitStatus[] = [];
    let denied: LimitStatus | null = null;
    const time = this.#options.clock.now();
    for (const { bucket, cost, admission } of items) {
      const isExceeded = admission === "DENIED";
      if (!isDenied && !isExceeded) bucket.spend(cost, now);
      const status = bucket.status(cost, isExceeded, now, time);
      statuses.push(status);
      this.#options.onOutcome?.(bucket.limit, isExceeded);
      if (!isExceeded && bucket.wantsMore(now, nodes)) this.#borrower.note(bucket);
      if (isExceeded && !bucket.isShadow) denied = longer(denied, status);
    }
    return { statuses, denied };
  }

  #bucketOf(name: string, limit: Limit, now: number): SharedBucket {
    const known = this.#buckets.get(name);
    known?.accept(limit);
    if (known !== undefined) return known;
    this.#sweep(now);
    const bucket = isQuota(limit) ? new QuotaBucket(name, limit) : new Bucket(name, limit);
    this.#buckets.set(name, bucket);
    return bucket;
  }

  /** Drops buckets of which nothing is lost, and beyond the maximum the oldest of which a denial is lost. */
  #sweep(now: number): void {
    const isFull = this.#buckets.size >= MAX_BUCKETS;
    if (!isFull && now - this.#swept < SWEEP_INTERVAL) return;
    this.#swept = now;
    for (const [name, bucket] of this.#buckets) if (bucket.isIdle(now)) this.#buckets.delete(name);
    for (const [name, bucket] of this.#buckets) {
      if (this.#buckets.size < MAX_BUCKETS * KEPT_PART) break;
      if (!bucket.isBusy) this.#buckets.delete(name);
    }
  }
}

/** Returns the denial after which a retry takes longer. */
function longer(a: LimitStatus | null, b: LimitStatus): LimitStatus {
  return a !== null && (a.retryAfter ?? Number.POSITIVE_INFINITY) >= (b.retryAfter ?? Number.POSITIVE_INFINITY) ? a : b;
}

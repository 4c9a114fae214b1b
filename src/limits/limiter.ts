import {
  allowsOutage,
  type Charge,
  type Charged,
  isRateLimit,
  type Limit,
  type LimitStatus,
} from "../domain/rate-limit.ts";
import type { Valid } from "../domain/verdict.ts";
import type { Clock } from "../lib/clock.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";
import { Borrower, type BorrowerOptions, type BorrowerStats, tooSlow } from "./borrower.ts";
import type { ReturnTokens } from "./grants.ts";
import { Owner } from "./owner.ts";
import type { Admission, SharedBucket } from "./shared-bucket.ts";

export interface LimiterOptions extends BorrowerOptions {
  readonly returnTokens: ReturnTokens;
  readonly clock: Clock;
  /** Called for each limit that is checked: whether it denies the verification, or would, were it enforced. */
  readonly onOutcome?: (limit: Limit, isExceeded: boolean) => void;
  /** Called for each limit that denies, with the name of its bucket. */
  readonly onExceeded?: (bucket: string, status: LimitStatus) => void;
  /** Called for each check of a limit that failed because the database did not answer: its outage policy may admit the verification. */
  readonly onOutage?: (limit: Limit, error: unknown) => void;
}

/** The limits that a valid credential is subject to. */
export type Limited = Pick<Valid, "keyId" | "keyLimits" | "actorLimits">;

/** A limit of a key as its bucket, and what a verification costs by it. */
interface Item {
  readonly bucket: SharedBucket;
  readonly cost: number;
  admission: Admission;
}

/**
 * Keys and actors whose buckets are kept, of about 600 bytes each: more than a server can serve in a second. Of those that are dropped nothing is
 * known when they are next used.
 */
const MAX_OWNERS = 40_000;

/** The part that is kept when there are too many, so that not every new one searches for others to drop. */
const KEPT_PART = 0.9;

/** Milliseconds between two searches for buckets that need not be kept; and while there are too many. */
const SWEEP_INTERVAL = 5_000;
const FULL_SWEEP_INTERVAL = 100;

/** Times that a verification waits for tokens which others of this node then take. */
const MAX_WAITS = 3;

/** The limits of keys on this node (docs/limits.md). */
export class Limiter {
  readonly #options: LimiterOptions;
  readonly #borrower: Borrower;
  /** By the ids of keys, and by the names of actors. */
  readonly #owners = new Map<string, Owner>();
  #swept = Number.NEGATIVE_INFINITY;

  constructor(options: LimiterOptions) {
    this.#options = options;
    this.#borrower = new Borrower(options);
  }

  /** Number of buckets that this node knows. */
  get size(): number {
    return this.#buckets().length;
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
    const now = this.#options.monotonic();
    if (keyLimits !== null) present(items, this.#ownerOf(keyId, "key/", now).bucketsOf(keyLimits), charges, now);
    if (actorLimits !== undefined) {
      const { actorId, limits } = actorLimits;
      present(items, this.#ownerOf(`actor/${actorId}`, "", now).bucketsOf(limits), charges, now);
    }
    return this.#attempt(items, MAX_WAITS, now);
  }

  /** Does the same for the one limit of another owner. */
  chargeOwner(name: string, limit: Limit, cost: number): MaybePromise<Charged> {
    const items: Item[] = [];
    const now = this.#options.monotonic();
    present(items, this.#ownerOf(name, "", now).bucketsOf([limit]), [{ name: limit.name, cost }], now);
    return this.#attempt(items, MAX_WAITS, now);
  }

  /**
   * Charges what was spent and is not charged yet, and returns tokens of quotas that are not used; all of them if the node stops. Small debts are
   * charged only here, so this is called each second.
   */
  async flush(isStopping: boolean): Promise<void> {
    await this.#borrower.charge(this.#buckets().filter(({ owes }) => owes));
    const now = this.#options.monotonic();
    const returns = this.#buckets().map((bucket) => bucket.release(now, isStopping));
    const returned = returns.filter((one) => one !== null);
    if (returned.length > 0) await this.#options.returnTokens(returned);
  }

  #buckets(): SharedBucket[] {
    return [...this.#owners.values()].flatMap(({ buckets }) => buckets);
  }

  #attempt(items: readonly Item[], waits: number, now: number): MaybePromise<Charged> {
    // With too many buckets nothing is admitted before it is charged, so that they can be dropped.
    const others = this.#owners.size > MAX_OWNERS ? null : this.#options.nodes();
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
        if (waits === 0 && item.bucket.isLate) throw tooSlow();
      } catch (error) {
        this.#options.onOutage?.(item.bucket.limit, error);
        if (!allowsOutage(item.bucket.limit)) throw error;
        unlimited.add(item);
      }
    };
    await Promise.all(unknown.map(borrow));
    return this.#attempt(
      items.filter((item) => !unlimited.has(item)),
      waits,
      this.#options.monotonic(),
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
      if (isExceeded && !bucket.isShadow) {
        denied = longer(denied, status);
        this.#options.onExceeded?.(bucket.name, status);
      }
    }
    return { statuses, denied };
  }

  /** Returns the owner of an id, whose name is the id after a prefix: the hot path finds a key by its id, without a text made for it. */
  #ownerOf(id: string, prefix: string, now: number): Owner {
    const known = this.#owners.get(id);
    if (known !== undefined) return known;
    this.#sweep(now);
    const owner = new Owner(prefix + id);
    this.#owners.set(id, owner);
    return owner;
  }

  /** Drops buckets of which nothing is lost, and beyond the maximum the oldest of which a denial is lost. */
  #sweep(now: number): void {
    const isFull = this.#owners.size >= MAX_OWNERS;
    if (now - this.#swept < (isFull ? FULL_SWEEP_INTERVAL : SWEEP_INTERVAL)) return;
    this.#swept = now;
    for (const [id, { buckets }] of this.#owners) {
      if (buckets.every((bucket) => bucket.isIdle(now))) this.#owners.delete(id);
    }
    for (const [id, { buckets }] of this.#owners) {
      if (this.#owners.size < MAX_OWNERS * KEPT_PART) break;
      if (!buckets.some(({ isBusy }) => isBusy)) this.#owners.delete(id);
    }
  }
}

/** Adds buckets with what a verification costs by them, without those of limits on demand that it does not name. */
function present(items: Item[], buckets: readonly SharedBucket[], charges: readonly Charge[], now: number): void {
  for (const bucket of buckets) {
    const cost = costOf(bucket.limit, charges);
    if (cost === undefined) continue;
    bucket.present(cost, now);
    items.push({ bucket, cost, admission: "UNKNOWN" });
  }
}

function costOf(limit: Limit, charges: readonly Charge[]): number | undefined {
  const charge = charges.length === 0 ? undefined : charges.find(({ name }) => name === limit.name);
  return charge?.cost ?? (isRateLimit(limit) && limit.onDemand ? undefined : 1);
}

/** Returns the denial after which a retry takes longer. */
function longer(a: LimitStatus | null, b: LimitStatus): LimitStatus {
  return a !== null && (a.retryAfter ?? Number.POSITIVE_INFINITY) >= (b.retryAfter ?? Number.POSITIVE_INFINITY) ? a : b;
}

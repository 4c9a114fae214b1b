import { isQuota, type Limit } from "../domain/rate-limit.ts";
import { Bucket } from "./bucket.ts";
import { QuotaBucket } from "./quota-bucket.ts";
import type { SharedBucket } from "./shared-bucket.ts";

/** The buckets of a key or of an actor, by its current limits. */
export class Owner {
  readonly #name: string;
  #limits: readonly Limit[] = [];
  #current: readonly SharedBucket[] = [];
  /** Of limits that it has no more, with something that is not charged or returned yet. */
  #former: readonly SharedBucket[] = [];

  constructor(name: string) {
    this.#name = name;
  }

  /** All that it has. */
  get buckets(): readonly SharedBucket[] {
    return this.#former.length === 0 ? this.#current : [...this.#current, ...this.#former];
  }

  /** Returns the buckets of limits, in their order. The limits of cached keys are the same object until they change. */
  bucketsOf(limits: readonly Limit[]): readonly SharedBucket[] {
    if (limits !== this.#limits) this.#accept(limits);
    return this.#current;
  }

  #accept(limits: readonly Limit[]): void {
    const known = this.buckets;
    this.#limits = limits;
    this.#current = limits.map((limit) => this.#bucketOf(limit, known));
    this.#former = known.filter((bucket) => !this.#current.includes(bucket) && bucket.isBusy);
  }

  #bucketOf(limit: Limit, known: readonly SharedBucket[]): SharedBucket {
    const name = `${this.#name}/${limit.name}${isQuota(limit) ? ":quota" : ""}`;
    const bucket = known.find((one) => one.name === name);
    bucket?.accept(limit);
    return bucket ?? (isQuota(limit) ? new QuotaBucket(name, limit) : new Bucket(name, limit));
  }
}

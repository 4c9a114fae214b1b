import type { KeyholdError } from "../domain/errors.ts";
import type { Principal } from "../domain/principal.ts";
import { networkOf } from "../lib/network.ts";
import type { RateLimiter } from "../lib/rate-limiter.ts";
import type { Attempt, FailureLimit } from "../verify/context.ts";
import { bucketOf, type OwnBucket, type OwnLimitOutcomes, ownerOf } from "./own-limits.ts";

type LimitName = "failed_verifications" | "caller_failed_verifications";

/** The limiter of each; null: none. */
export type FailureLimiters = Readonly<Record<LimitName, RateLimiter | null>>;

/**
 * Limits failed verifications by the address of the client, as the caller states it, and by the caller. The address is checked first: who
 * exceeds the limit of an address takes nothing of the caller's. All is in memory: a flood of failures costs the database nothing.
 */
export class FailedVerifications implements FailureLimit {
  readonly #limiters: FailureLimiters;
  readonly #outcomes: OwnLimitOutcomes;
  /** Reads in flight, by limit and bucket: as many may fail. */
  readonly #reads = new Map<string, number>();

  constructor(limiters: FailureLimiters, outcomes: OwnLimitOutcomes) {
    this.#limiters = limiters;
    this.#outcomes = outcomes;
  }

  begin(caller: Principal, clientIp: string | undefined): Attempt {
    const buckets = this.#bucketsOf(caller, clientIp);
    let isReading = false;
    return {
      read: () => {
        const error = this.#check(buckets, caller);
        isReading = error === null;
        if (isReading) for (const bucket of buckets) this.#addReads(bucket, 1);
        return error;
      },
      end: (isFailed) => {
        if (isReading) for (const bucket of buckets) this.#addReads(bucket, -1);
        return isFailed ? this.#count(buckets, caller) : null;
      },
    };
  }

  #check(buckets: readonly OwnBucket[], caller: Principal): KeyholdError | null {
    for (const bucket of buckets) {
      const wait = bucket.limiter.wait(bucket.name, 1 + (this.#reads.get(readsOf(bucket)) ?? 0));
      if (wait > 0) return this.#outcomes.deny(bucket.limit, bucket.by, wait, caller, bucket.name);
    }
    return null;
  }

  #count(buckets: readonly OwnBucket[], caller: Principal): KeyholdError | null {
    for (const bucket of buckets) {
      const error = this.#outcomes.take(bucket, caller);
      if (error !== null) return error;
    }
    return null;
  }

  #addReads(bucket: OwnBucket, change: number): void {
    const name = readsOf(bucket);
    const reads = (this.#reads.get(name) ?? 0) + change;
    if (reads === 0) this.#reads.delete(name);
    else this.#reads.set(name, reads);
  }

  /** An address that the caller does not state is its own, unless it has authenticated: a gateway is no client. */
  #bucketsOf(caller: Principal, clientIp: string | undefined): OwnBucket[] {
    const by = ownerOf(caller);
    const address = clientIp || (by === "caller" ? "" : caller.clientAddress);
    const { failed_verifications: ofAddress, caller_failed_verifications: ofCaller } = this.#limiters;
    const buckets: OwnBucket[] = [];
    if (ofAddress !== null && address !== "")
      buckets.push({
        limit: "failed_verifications",
        limiter: ofAddress,
        by: "client_address",
        name: networkOf(address),
      });
    if (ofCaller !== null)
      buckets.push({ limit: "caller_failed_verifications", limiter: ofCaller, by, name: bucketOf(caller) });
    return buckets;
  }
}

function readsOf({ limit, name }: OwnBucket): string {
  return `${limit} ${name}`;
}

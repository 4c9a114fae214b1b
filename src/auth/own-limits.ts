import { KeyholdError } from "../domain/errors.ts";
import { callerName, type Principal } from "../domain/principal.ts";
import { memoizable } from "../lib/memoize.ts";
import { networkOf } from "../lib/network.ts";
import { retryAfterSeconds } from "../lib/rate-limit-fields.ts";
import type { RateLimiter } from "../lib/rate-limiter.ts";

/** The limits of Keyhold on its own callers (docs/limits.md), with what each counts. */
export const OWN_LIMITS = {
  public: "calls without a credential",
  failures: "calls with a rejected credential",
  failed_verifications: "failed verifications",
  caller_failed_verifications: "failed verifications",
  changes: "changes",
  imports: "imported keys",
} as const;

export type OwnLimit = keyof typeof OWN_LIMITS;

/** Whose bucket a limit has taken a token from. */
export type CountedBy = "client_address" | "caller";

/** Errors that are kept, because they are thrown under load: some per limit. */
const MAX_ERRORS = 100;

const errors = new Map<string, KeyholdError>();

/** Returns the error for a call over a limit. `wait`: the milliseconds until a token is available. */
export function rateLimited(limit: OwnLimit, by: CountedBy, wait: number): KeyholdError {
  const retryAfter = retryAfterSeconds([wait]);
  const name = `${limit} ${by} ${retryAfter}`;
  const known = errors.get(name);
  if (known !== undefined) return known;
  const owner = by === "caller" ? "caller" : "client address";
  const message = `too many ${OWN_LIMITS[limit]} by this ${owner}; retry after ${retryAfter} s`;
  const options = { metadata: { limit }, retryAfter, quota: { subject: by, description: message } };
  const error = memoizable(new KeyholdError("RATE_LIMITED", message, options));
  if (errors.size < MAX_ERRORS) errors.set(name, error);
  return error;
}

/** Returns the name of the bucket of a caller. Callers without a credential have one per network. */
export function bucketOf(caller: Principal): string {
  return caller.method === "none" ? networkOf(caller.clientAddress) : callerName(caller);
}

export function ownerOf({ method }: Principal): CountedBy {
  return method === "none" ? "client_address" : "caller";
}

/** Receives a call over a limit, and the name of the bucket, which is the caller or the network of the client. */
export type OnLimited = (limit: OwnLimit, caller: Principal, bucket: string) => void;

/** A bucket in memory that a limit takes tokens from. */
export interface OwnBucket {
  readonly limit: OwnLimit;
  readonly limiter: RateLimiter;
  readonly by: CountedBy;
  readonly name: string;
}

/** Counts what the limits decide. */
export class OwnLimitOutcomes {
  readonly admitted = counters();
  readonly denied = counters();
  readonly #onLimited: OnLimited;

  constructor(onLimited: OnLimited = () => {}) {
    this.#onLimited = onLimited;
  }

  admit(limit: OwnLimit): void {
    this.admitted[limit]++;
  }

  /** Takes a token from a bucket. Returns the error for a call over the limit; null: the limit admits it. */
  take({ limit, limiter, by, name }: OwnBucket, caller: Principal): KeyholdError | null {
    if (!limiter.take(name)) return this.deny(limit, by, limiter.wait(name), caller, name);
    this.admit(limit);
    return null;
  }

  /** Returns the error for a call over a limit. */
  deny(limit: OwnLimit, by: CountedBy, wait: number, caller: Principal, bucket: string): KeyholdError {
    this.denied[limit]++;
    this.#onLimited(limit, caller, bucket);
    return rateLimited(limit, by, wait);
  }
}

function counters(): Record<OwnLimit, number> {
  return { public: 0, failures: 0, failed_verifications: 0, caller_failed_verifications: 0, changes: 0, imports: 0 };
}

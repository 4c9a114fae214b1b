import type { Principal } from "../domain/principal.ts";
import type { Charged, RateLimit } from "../domain/rate-limit.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import { bucketOf, type OwnLimitOutcomes, ownerOf } from "./own-limits.ts";

export type ChangeLimit = "changes" | "imports";

/** Charges a limit of an owner, whose bucket all servers share. */
export type ChargeOwner = (owner: string, limit: RateLimit, cost: number) => MaybePromise<Charged>;

/** Limits the changes of each caller on all servers together. */
export class ChangeLimits {
  readonly #limits: Readonly<Record<ChangeLimit, RateLimit | null>>;
  readonly #charge: ChargeOwner;
  readonly #outcomes: OwnLimitOutcomes;

  constructor(
    limits: Readonly<Record<ChangeLimit, RateLimit | null>>,
    charge: ChargeOwner,
    outcomes: OwnLimitOutcomes,
  ) {
    this.#limits = limits;
    this.#charge = charge;
    this.#outcomes = outcomes;
  }

  /** Throws or rejects with `RATE_LIMITED`, or `DATABASE_UNAVAILABLE`, without which nothing can be changed either. */
  readonly admit = (name: ChangeLimit, caller: Principal, cost: number): MaybePromise<void> => {
    const limit = this.#limits[name];
    if (limit === null) return;
    const bucket = bucketOf(caller);
    return andThen(this.#charge(`own/${name}/${bucket}`, limit, cost), ({ denied }) => {
      if (denied !== null) throw this.#outcomes.deny(name, ownerOf(caller), denied.retryAfter ?? 0, caller, bucket);
      this.#outcomes.admit(name);
    });
  };
}

import type { Quota, RateLimit } from "../domain/rate-limit.ts";

/** An owner of keys that has limits. Other owners are known only by their keys. */
export interface Actor {
  readonly actorId: string;
  /** Limits that all keys of the actor share, at least one; null: it has none. */
  readonly rateLimits: readonly RateLimit[] | null;
  readonly quotas: readonly Quota[] | null;
  readonly createTime: Date;
  readonly updateTime: Date;
}

/** Fields that are undefined are left unchanged. */
export type ActorUpdate = Partial<Pick<Actor, "rateLimits" | "quotas">>;

/** A change of what is used of a quota in its current period. */
export interface QuotaAdjustment {
  readonly quota: string;
  /** Tokens to add; negative: to subtract. */
  readonly delta: number;
}

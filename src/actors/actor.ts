import type { RateLimit } from "../domain/rate-limit.ts";

/** An owner of keys that has limits. Other owners are known only by their keys. */
export interface Actor {
  readonly actorId: string;
  /** The limits that all keys of the actor share, at least one; null: it has none. */
  readonly rateLimits: readonly RateLimit[] | null;
  readonly createTime: Date;
  readonly updateTime: Date;
}

export type ActorUpdate = Pick<Actor, "rateLimits">;

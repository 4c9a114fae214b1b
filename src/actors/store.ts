import type { Principal, Restrictions } from "../domain/principal.ts";
import type { Actor, ActorUpdate, QuotaAdjustment } from "./actor.ts";
import type { ActorFilter } from "./filter.ts";

export interface ActorQuery {
  readonly filter: ActorFilter;
  /** The last actor of the previous page; null for the first page. */
  readonly after: string | null;
  readonly limit: number;
}

/** Changes resolve when every node verifies keys by them. */
export interface ActorStore {
  find(actorId: string): Promise<Actor | null>;
  /**
   * Returns actors in the order of their ids that the restrictions permit. Rejects with `LIST_TOO_SLOW` if the database finds those that match
   * the filter too slowly.
   */
  list(query: ActorQuery, restrictions: Restrictions): Promise<readonly Actor[]>;
  /** Updates an actor, or creates it. */
  put(actorId: string, update: ActorUpdate, time: Date, principal: Principal): Promise<Actor>;
  /** Returns null if the actor has no quota of the name. */
  adjustQuota(actorId: string, adjustment: QuotaAdjustment, time: Date, principal: Principal): Promise<Actor | null>;
  /** Returns whether the actor existed. */
  delete(actorId: string, principal: Principal): Promise<boolean>;
}

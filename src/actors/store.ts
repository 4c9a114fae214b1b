import type { Principal, Restrictions } from "../domain/principal.ts";
import type { Actor, ActorUpdate } from "./actor.ts";

/** Changes resolve when every node verifies keys by them. */
export interface ActorStore {
  find(actorId: string): Promise<Actor | null>;
  /** Returns actors in the order of their ids that the restrictions permit; `after`: null begins with the first. */
  list(after: string | null, limit: number, restrictions: Restrictions): Promise<readonly Actor[]>;
  /** Updates an actor, or creates it. */
  put(actorId: string, update: ActorUpdate, time: Date, principal: Principal): Promise<Actor>;
  /** Returns whether the actor existed. */
  delete(actorId: string, principal: Principal): Promise<boolean>;
}

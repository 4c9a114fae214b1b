import { fieldError, KeyholdError } from "../domain/errors.ts";
import type { Principal } from "../domain/principal.ts";
import { responseSize } from "../domain/response-size.ts";
import {
  type PageRequest,
  type PagingContext,
  type ParsedPage,
  pageOf,
  parsePageRequest,
} from "../paging/page-request.ts";
import type { Actor, ActorUpdate, QuotaAdjustment } from "./actor.ts";
import { type ActorFilter, parseActorFilter } from "./filter.ts";
import type { ActorStore } from "./store.ts";

export interface ActorsContext extends PagingContext {
  readonly store: ActorStore;
}

/** A place in the list of actors. */
type Position = Pick<Actor, "actorId">;

export type ActorsPage = ParsedPage<ActorFilter, null, Position>;

/** @throws `ACTOR_NOT_FOUND`, also for an actor that the caller may not know of */
export async function getActor({ store }: ActorsContext, principal: Principal, actorId: string): Promise<Actor> {
  const actor = isVisible(actorId, principal) ? await store.find(actorId) : null;
  if (actor === null) throw notFound();
  return actor;
}

/** Throws `INVALID_ARGUMENT` with every invalid field. */
export function parseActorsPage(context: PagingContext, request: Omit<PageRequest, "orderBy">): ActorsPage {
  return parsePageRequest(context, "actors", { ...request, orderBy: "" }, parseActorFilter, () => null);
}

/** Returns one page of actors in the order of their ids, and the token of the next one. */
export async function listActors({ store, rings }: ActorsContext, { restrictions }: Principal, page: ActorsPage) {
  const query = { filter: page.filter, after: page.after?.actorId ?? null, limit: page.size + 1 };
  const found = await store.list(query, restrictions);
  return pageOf(page, found, sizeOf, ({ actorId }): Position => ({ actorId }), rings.pageToken);
}

/** Sets the limits of an actor, which need not exist yet. @throws `CALLER_NOT_PERMITTED` */
export async function updateActor(
  { store, clock }: ActorsContext,
  principal: Principal,
  actorId: string,
  update: ActorUpdate,
): Promise<Actor> {
  if (!isVisible(actorId, principal)) throw notPermitted();
  return store.put(actorId, update, new Date(clock.now()), principal);
}

/**
 * Adds tokens to what is used of a quota, or subtracts them.
 *
 * @throws `QUOTA_NOT_FOUND`, also for an actor that the caller may not know of
 */
export async function adjustActorQuota(
  { store, clock }: ActorsContext,
  principal: Principal,
  actorId: string,
  adjustment: QuotaAdjustment,
): Promise<Actor> {
  const adjusted = isVisible(actorId, principal)
    ? await store.adjustQuota(actorId, adjustment, new Date(clock.now()), principal)
    : null;
  if (adjusted === null) throw fieldError("QUOTA_NOT_FOUND", "name", "the actor has no quota of this name");
  return adjusted;
}

/** Deletes an actor with its limits; its keys remain. @throws `ACTOR_NOT_FOUND` */
export async function deleteActor({ store }: ActorsContext, principal: Principal, actorId: string): Promise<void> {
  const isDeleted = isVisible(actorId, principal) && (await store.delete(actorId, principal));
  if (!isDeleted) throw notFound();
}

function isVisible(actorId: string, { restrictions: { actorIds } }: Principal): boolean {
  return actorIds === null || actorIds.includes(actorId);
}

function sizeOf({ actorId, rateLimits, quotas }: Actor): number {
  return responseSize({ actorId, rateLimits, quotas, scopes: [], metadata: {} });
}

function notFound(): KeyholdError {
  return new KeyholdError("ACTOR_NOT_FOUND", "no limits were set for this actor");
}

function notPermitted(): KeyholdError {
  const metadata = { field: "actor.actor_id" };
  const message = "actor.actor_id must be one of the actors to which the caller is restricted";
  return new KeyholdError("CALLER_NOT_PERMITTED", message, { metadata });
}

import { KeyholdError } from "../domain/errors.ts";
import type { Principal } from "../domain/principal.ts";
import { responseSize } from "../domain/response-size.ts";
import { type PagingContext, type ParsedPage, pageOf, parsePageRequest } from "../paging/page-request.ts";
import type { Actor, ActorUpdate } from "./actor.ts";
import type { ActorStore } from "./store.ts";

export interface ActorsContext extends PagingContext {
  readonly store: ActorStore;
}

/** A place in the list of actors. */
type Position = Pick<Actor, "actorId">;

export type ActorsPage = ParsedPage<null, null, Position>;

/** @throws `ACTOR_NOT_FOUND`, also for an actor that the caller may not know of */
export async function getActor({ store }: ActorsContext, principal: Principal, actorId: string): Promise<Actor> {
  const actor = isVisible(actorId, principal) ? await store.find(actorId) : null;
  if (actor === null) throw notFound();
  return actor;
}

/** Throws `INVALID_ARGUMENT` with every invalid field. */
export function parseActorsPage(
  context: PagingContext,
  request: { readonly pageSize: number; readonly pageToken: string },
): ActorsPage {
  const nothing = () => null;
  return parsePageRequest(context, "actors", { ...request, filter: "", orderBy: "" }, nothing, nothing);
}

/** Returns one page of actors in the order of their ids, and the token of the next one. */
export async function listActors({ store, rings }: ActorsContext, { restrictions }: Principal, page: ActorsPage) {
  const found = await store.list(page.after?.actorId ?? null, page.size + 1, restrictions);
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

/** Deletes an actor with its limits; its keys remain. @throws `ACTOR_NOT_FOUND` */
export async function deleteActor({ store }: ActorsContext, principal: Principal, actorId: string): Promise<void> {
  const isDeleted = isVisible(actorId, principal) && (await store.delete(actorId, principal));
  if (!isDeleted) throw notFound();
}

function isVisible(actorId: string, { restrictions: { actorIds } }: Principal): boolean {
  return actorIds === null || actorIds.includes(actorId);
}

function sizeOf({ actorId, rateLimits }: Actor): number {
  return responseSize({ actorId, rateLimits, scopes: [], metadata: {} });
}

function notFound(): KeyholdError {
  return new KeyholdError("ACTOR_NOT_FOUND", "no limits were set for this actor");
}

function notPermitted(): KeyholdError {
  const metadata = { field: "actor.actor_id" };
  const message = "actor.actor_id must be one of the actors to which the caller is restricted";
  return new KeyholdError("CALLER_NOT_PERMITTED", message, { metadata });
}

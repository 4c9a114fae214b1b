import type { MessageInitShape } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { ActorSchema, type ActorsService, type Actor as WireActor } from "../../../gen/keyhold/v2alpha1/actors_pb.js";
import type { Actor, ActorUpdate } from "../../actors/actor.ts";
import {
  adjustActorQuota,
  deleteActor,
  getActor,
  listActors,
  parseActorsPage,
  updateActor,
} from "../../actors/actors.ts";
import { checkAll, invalidArgument } from "../../domain/errors.ts";
import { pageSizeOf } from "../../paging/page-request.ts";
import { costOfItems, type ServiceRows } from "../row.ts";
import { timestamp } from "./key-resources.ts";
import { checkLimits, quotas, rateLimits } from "./rate-limits.ts";
import { maskedUpdate } from "./update-mask.ts";

export const actors: ServiceRows<typeof ActorsService> = {
  getActor: {
    implement:
      ({ actors }) =>
      ({ actorId }) =>
      async (principal) =>
        actorMessage(await getActor(actors, principal, actorId)),
    policy: "keyhold:keys.read",
    idempotency: "no side effects",
  },
  listActors: {
    implement:
      ({ actors }) =>
      (request) => {
        const page = parseActorsPage(actors, request);
        return async (principal) => {
          const { items, nextPageToken } = await listActors(actors, principal, page);
          return { actors: items.map(actorMessage), nextPageToken };
        };
      },
    policy: "keyhold:keys.read",
    idempotency: "no side effects",
    cost: ({ pageSize }) => costOfItems(pageSizeOf(pageSize)),
  },
  updateActor: {
    implement:
      ({ actors }) =>
      ({ actor, updateMask }) => {
        if (actor === undefined) throw invalidArgument("actor", "is required", "FIELD_REQUIRED");
        const [, update] = checkAll(
          () => requireActorId(actor.actorId),
          () => readUpdate(actor, updateMask),
        );
        return async (principal) => actorMessage(await updateActor(actors, principal, actor.actorId, update));
      },
    policy: "keyhold:keys.update",
    idempotency: "idempotent",
  },
  adjustActorQuota: {
    implement:
      ({ actors }) =>
      ({ actorId, name: quota, delta }) =>
      async (principal) =>
        actorMessage(await adjustActorQuota(actors, principal, actorId, { quota, delta })),
    policy: "keyhold:keys.update",
    idempotency: "none",
  },
  deleteActor: {
    implement:
      ({ actors }) =>
      ({ actorId }) =>
      async (principal) => {
        await deleteActor(actors, principal, actorId);
        return {};
      },
    policy: "keyhold:keys.update",
    idempotency: "idempotent",
  },
};

function requireActorId(actorId: string): void {
  if (actorId === "") throw invalidArgument("actor.actor_id", "is required", "FIELD_REQUIRED");
}

function readUpdate(actor: WireActor, mask: FieldMask | undefined): ActorUpdate {
  const masked = maskedUpdate<typeof ActorSchema, Pick<WireActor, "rateLimits" | "quotas">>(mask, ActorSchema, actor);
  return checkLimits(masked, "actor.");
}

function actorMessage(actor: Actor): MessageInitShape<typeof ActorSchema> {
  return {
    actorId: actor.actorId,
    rateLimits: rateLimits(actor.rateLimits),
    quotas: quotas(actor.quotas),
    createTime: timestamp(actor.createTime),
    updateTime: timestamp(actor.updateTime),
  };
}

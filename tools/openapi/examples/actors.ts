import type { JsonObject } from "@bufbuild/protobuf";
import type { Example, Examples } from "./example.ts";
import { CREATED, errorBody, invalidArgument, SAMPLES } from "./samples.ts";

const { limitedActorId: actor_id, unknownActorId } = SAMPLES;

const limit = {
  ...{ name: "requests", quota: 600, window: "60s", burst: 600 },
  ...{ enforcement: "RATE_LIMIT_ENFORCEMENT_ENFORCED", on_demand: false, on_outage: "OUTAGE_POLICY_DENY" },
};

const monthly = {
  ...{ name: "monthly", limit: 10000, period: "QUOTA_PERIOD_MONTH", anchor_time: "2001-01-01T00:00:00Z" },
};

const actor: JsonObject = {
  actor_id,
  rate_limits: [limit],
  quotas: [monthly],
  create_time: CREATED,
  update_time: CREATED,
};

const parameters = { actor_id };
const unknown: Example = {
  summary: "No limits were set for the actor",
  parameters: { actor_id: unknownActorId },
  status: 404,
  response: errorBody(404, "NOT_FOUND", "ACTOR_NOT_FOUND", "no limits were set for this actor"),
};

export const actorExamples: Readonly<Record<string, Examples>> = {
  ActorsService_GetActor: {
    get: { summary: "An actor", parameters, status: 200, response: actor },
    unknown,
  },
  ActorsService_ListActors: {
    list: {
      summary: "The first page",
      parameters: { page_size: 1000 },
      status: 200,
      response: { actors: [actor], next_page_token: "" },
    },
    otherToken: {
      summary: "A page token of another list",
      parameters: { page_token: "AZkfOlscfSGcRAobLD1OXw" },
      status: 400,
      response: invalidArgument(
        "page_token",
        "must be a next_page_token returned by the same method for the same filter and order_by",
        "VALUE_NOT_ALLOWED",
      ),
    },
  },
  ActorsService_UpdateActor: {
    limit: {
      summary: "Let all keys of an actor together be verified 600 times per minute, and 10,000 times per month",
      parameters: { actor_id, update_mask: "rate_limits,quotas" },
      body: {
        rate_limits: [{ name: "requests", quota: 600, window: "1m" }],
        quotas: [{ name: "monthly", limit: 10000, period: "QUOTA_PERIOD_MONTH" }],
      },
      status: 200,
      response: actor,
    },
    repeated: {
      summary: "Two limits of one name",
      parameters: { actor_id, update_mask: "rate_limits" },
      body: { rate_limits: ["1m", "1h"].map((window) => ({ name: "requests", quota: 600, window })) },
      status: 400,
      response: invalidArgument("actor.rate_limits[1].name", "is used twice", "DUPLICATE_FIELD"),
    },
  },
  ActorsService_AdjustActorQuota: {
    subtract: {
      summary: "Subtract 500 verifications of this month",
      parameters,
      body: { name: "monthly", delta: -500 },
      status: 200,
      response: actor,
    },
    unknown: {
      summary: "No such quota",
      parameters,
      body: { name: "daily", delta: -500 },
      status: 404,
      response: errorBody(404, "NOT_FOUND", "QUOTA_NOT_FOUND", "name: the actor has no quota of this name", {
        field: "name",
      }),
    },
  },
  ActorsService_DeleteActor: {
    delete: { summary: "Delete the limits of an actor", parameters, status: 200, response: {} },
    unknown,
  },
};

import type { JsonObject } from "@bufbuild/protobuf";
import { OUTCOMES } from "../../../src/usage/counter.ts";
import type { Examples } from "./example.ts";
import { invalidArgument, keyNotFound, SAMPLES } from "./samples.ts";

const { issuedKeyId: key_id, unknownKeyId } = SAMPLES;

const DAY = "2026-11-22T00:00:00Z";
const NEXT_DAY = "2026-11-23T00:00:00Z";

const count = (fields: JsonObject): JsonObject => ({
  ...{ key_id: "", actor_id: "", outcome: "", count: "0", limit: "", units: "0" },
  ...fields,
});

export const usageExamples: Readonly<Record<string, Examples>> = {
  UsageService_QueryUsage: {
    top: {
      summary: "The key that was used most on a day",
      parameters: { start_time: DAY, end_time: NEXT_DAY, group_by: "key", page_size: 1 },
      status: 200,
      response: { usage_counts: [count({ key_id, actor_id: "team_42", count: "120411" })], next_page_token: "" },
    },
    failures: {
      summary: "The expired credentials of an actor by hour",
      parameters: { actor_id: "team_42", outcome: "EXPIRED", step: "1h" },
      status: 200,
      response: { usage_counts: [count({ start_time: "2026-11-22T09:00:00Z", count: "17" })], next_page_token: "" },
    },
    units: {
      summary: "What an actor has used by its limits `tokens`, by day",
      parameters: { actor_id: "team_42", limit: "tokens", step: "1d" },
      status: 200,
      response: { usage_counts: [count({ start_time: DAY, units: "1840220" })], next_page_token: "" },
    },
    misspelt: {
      summary: "An unknown outcome",
      parameters: { outcome: "REVOKED" },
      status: 400,
      response: invalidArgument("outcome", `must be one of ${OUTCOMES.join(", ")}`, "VALUE_NOT_ALLOWED"),
    },
  },
  UsageService_GetKeyUsage: {
    day: {
      summary: "A day by hour",
      parameters: { key_id, start_time: DAY, end_time: NEXT_DAY },
      status: 200,
      response: {
        ...{ key_id, start_time: DAY, end_time: NEXT_DAY, valid_count: "5003", rejected_count: "17" },
        usage_counts: [
          count({ start_time: "2026-11-22T09:00:00Z", outcome: "VALID", count: "5003" }),
          count({ start_time: "2026-11-22T09:00:00Z", outcome: "EXPIRED", count: "17" }),
        ],
      },
    },
    unknown: {
      summary: "The key does not exist",
      parameters: { key_id: unknownKeyId },
      status: 404,
      response: keyNotFound("key"),
    },
  },
};

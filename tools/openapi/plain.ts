import type { JsonObject } from "@bufbuild/protobuf";
import { codeSamples } from "./code-samples.ts";
import { json, object, REQUEST_ID } from "./responses.ts";
import { openEnum, refTo } from "./schema.ts";

/** What is served beside the RPCs: health (src/transport/services/health.ts). */
const TAG = "Health";

export const PLAIN_TAGS = [{ name: TAG, description: "Liveness and readiness of the server." }];

const STATUS = openEnum("`ok` or `unavailable`", ["ok", "unavailable"]);

export const PLAIN_SCHEMAS: JsonObject = {
  Liveness: object({ status: openEnum("`ok`", ["ok"]) }),
  Readiness: {
    type: "object",
    properties: {
      status: STATUS,
      checks: {
        type: "object",
        description: "The state of each dependency, by name.",
        additionalProperties: STATUS,
      },
      workers: { description: "Present if several processes serve the port.", ...refTo("WorkerCounts") },
    },
    required: ["status", "checks"],
  },
  WorkerCounts: object({ running: { type: "integer" }, configured: { type: "integer" } }),
};

const READY = { status: "ok", checks: { database: "ok", signing_keys: "ok" } };
const UNAVAILABLE = { status: "unavailable", checks: { database: "unavailable", signing_keys: "ok" } };

export const PLAIN_PATHS: JsonObject = {
  "/health/alive": get("/health/alive", "Health_Alive", "Answers as long as the process does", {
    200: response("The process answers.", "Liveness", { alive: { value: { status: "ok" } } }),
  }),
  "/health/ready": get("/health/ready", "Health_Ready", "Says whether the server can serve", {
    200: response("It can serve.", "Readiness", { ready: { value: READY } }),
    503: response("It cannot serve now, or is stopping.", "Readiness", { unavailable: { value: UNAVAILABLE } }),
  }),
};

function get(path: string, operationId: string, summary: string, responses: JsonObject): JsonObject {
  const samples = codeSamples({ httpMethod: "GET", path, needsToken: false });
  return { get: { operationId, tags: [TAG], summary, security: [], responses, "x-codeSamples": samples } };
}

function response(description: string, schema: string, examples: JsonObject): JsonObject {
  return { description, headers: REQUEST_ID, content: json(refTo(schema), examples) };
}

import type { DescMessage, DescMethodUnary, JsonObject } from "@bufbuild/protobuf";
import { DerivedKeysService } from "../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { BatchCreateImportedApiKeysResponseSchema as Batch } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import type { Examples } from "./examples/example.ts";
import { type Reason, type ReasonRow, readReasonRows } from "./reasons.ts";
import type { Schemas } from "./schema.ts";

const REQUEST_ID = { "X-Request-Id": { $ref: "#/components/headers/X-Request-Id" } };

const rows = readReasonRows();

/** Header fields of answers, which responses refer to. */
export const HEADERS: JsonObject = {
  "X-Request-Id": {
    description: "The identifier of the request, as the caller gave it or made here. The log has it too.",
    schema: { type: "string" },
  },
  "Cache-Control": { description: "How long the answer may be kept.", schema: { type: "string" } },
  ETag: { description: "What `If-None-Match` takes.", schema: { type: "string" } },
  "Retry-After": { description: "Seconds after which to come again.", schema: { type: "string" } },
  "WWW-Authenticate": { description: "RFC 6750 §3.", schema: { type: "string" } },
};

/** Headers that an error brings, by its HTTP status. */
const ERROR_HEADERS: Readonly<Record<string, readonly string[]>> = {
  401: ["WWW-Authenticate"],
  503: ["Retry-After"],
};

/** The responses of an RPC by status: its answer, then its errors with their reasons. */
export function responsesOf(
  method: DescMethodUnary,
  schemas: Schemas,
  reasons: readonly Reason[],
  examples: Examples,
): JsonObject {
  const isJwks = method === DerivedKeysService.method.getJwks;
  const ok = {
    description: "The answer.",
    headers: { ...REQUEST_ID, ...headerRefs(isJwks ? ["Cache-Control", "ETag"] : []) },
    content: json(schemas.ref(method.output, "output"), examplesOf(examples, "200")),
  };
  const notModified: JsonObject = isJwks
    ? { 304: { description: "The caller has this answer already, by `If-None-Match`." } }
    : {};
  return { 200: ok, ...notModified, ...errorResponses(reasons, examples), default: OTHER_ERROR };
}

const OTHER_ERROR: JsonObject = {
  description: "Any other error, such as one of HTTP itself.",
  headers: REQUEST_ID,
  content: json({ $ref: "#/components/schemas/Error" }, {}),
};

function errorResponses(reasons: readonly Reason[], examples: Examples): JsonObject {
  const byStatus = Map.groupBy(reasons.map(rowOf), ({ http }) => http);
  return Object.fromEntries([...byStatus].map(([http, some]) => [http, errorResponse(http, some, examples)]));
}

function errorResponse(http: string, some: readonly ReasonRow[], examples: Examples): JsonObject {
  return {
    description: some.map(({ reason, when }) => `- \`${reason}\`: ${when}`).join("\n"),
    headers: { ...REQUEST_ID, ...headerRefs(ERROR_HEADERS[http] ?? []) },
    content: json({ $ref: "#/components/schemas/Error" }, examplesOf(examples, http)),
  };
}

function rowOf(reason: Reason): ReasonRow {
  const row = rows.get(reason);
  if (row === undefined) throw new Error(`docs/api.md does not know ${reason}`);
  return row;
}

function examplesOf(examples: Examples, http: string): JsonObject {
  const found = Object.entries(examples).filter(([, { status }]) => String(status) === http);
  return Object.fromEntries(found.map(([name, { summary, response }]) => [name, { summary, value: response }]));
}

function headerRefs(names: readonly string[]): JsonObject {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

export function json(schema: JsonObject, examples: JsonObject): JsonObject {
  return { "application/json": { schema, ...(Object.keys(examples).length > 0 ? { examples } : {}) } };
}

/** The schemas of the form of errors (AIP-193). */
export function errorSchemas(schemas: Schemas): JsonObject {
  const reasons = [...rows.values()];
  const names = [...new Set(reasons.map(({ status }) => status))];
  return {
    Error: object({
      error: object({
        code: { type: "integer", description: "The HTTP status." },
        message: { type: "string", description: "For people." },
        status: { type: "string", enum: names, description: "The name in google.rpc.Code." },
        details: { type: "array", items: { anyOf: DETAILS.map((name) => ({ $ref: `#/components/schemas/${name}` })) } },
      }),
    }),
    ErrorInfo: object({
      "@type": { const: "type.googleapis.com/google.rpc.ErrorInfo" },
      reason: {
        type: "string",
        description: "What a program should look at. A later release may add to them.",
        examples: reasons.map(({ reason }) => reason),
      },
      domain: { const: "keyhold" },
      metadata: { type: "object", additionalProperties: { type: "string" } },
    }),
    BadRequest: object({
      "@type": { const: "type.googleapis.com/google.rpc.BadRequest" },
      field_violations: {
        type: "array",
        items: {
          ...object({ field: { type: "string" }, description: { type: "string" }, reason: { type: "string" } }),
          description: "What is wrong with one field, named by its path such as `requests[3].raw_key`.",
        },
      },
    }),
    RetryInfo: {
      ...object({
        "@type": { const: "type.googleapis.com/google.rpc.RetryInfo" },
        retry_delay: { type: "string", examples: ["1s"] },
      }),
      description: "After which time to come again, as `Retry-After` says it too.",
    },
    BatchResults: {
      ...object({ "@type": { const: `type.googleapis.com/${Batch.typeName}` }, ...fieldsOf(Batch, schemas) }),
      description: "The results of a batch of which nothing was imported.",
    },
  };
}

function fieldsOf({ fields }: DescMessage, schemas: Schemas): JsonObject {
  return Object.fromEntries(fields.map((field) => [field.name, schemas.field(field, "output")]));
}

const DETAILS = ["ErrorInfo", "BadRequest", "RetryInfo", "BatchResults"];

/** An object that always has all of these, and `reason` first. */
export function object(properties: JsonObject): JsonObject {
  return { type: "object", properties, required: Object.keys(properties) };
}

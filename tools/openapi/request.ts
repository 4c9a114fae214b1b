import type { DescField, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { DerivedKeysService } from "../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import type { RestMethod, RestRule } from "../../src/transport/rest/http-rule.ts";
import { isFieldMask } from "../../src/transport/rest/request-decoder.ts";
import type { Examples } from "./examples/example.ts";
import { json } from "./responses.ts";
import { isRequired } from "./rules.ts";
import type { Schemas } from "./schema.ts";

const { verifyApiKey, batchVerifyApiKeys } = ApiKeysService.method;

/** Header fields that we read beside those of HTTP itself, which parameters refer to. */
export const HEADER_PARAMETERS: JsonObject = {
  "X-Request-Id": header(
    "X-Request-Id",
    "An identifier of the request for the log. One is made where there is none, or one of another form.",
    {
      type: "string",
      pattern: "^[\\w.:-]{1,64}$",
    },
  ),
  "Cache-Control": header(
    "Cache-Control",
    "`no-cache`: reads the key from the database and caches it. `no-store`: reads it and does not cache it.",
    {
      type: "string",
    },
  ),
  "Last-Event-ID": header(
    "Last-Event-ID",
    "The id of the last event that was received: the `resume_token`, unless the query has one. An `EventSource` sends it.",
    { type: "string" },
  ),
  "If-None-Match": header("If-None-Match", "The `ETag` of the cached response.", { type: "string" }),
};

function header(name: string, description: string, schema: JsonObject): JsonObject {
  return { name, in: "header", required: false, description, schema };
}

/** The path as OpenAPI writes it: a variable by the field it ends in, and one that takes a fixed text as that text. */
export function pathOf({ template: { segments, verb }, variables }: RestRule): string {
  const parts = segments.map((segment, index) => {
    const bound = variables.find((variable) => variable.segment === index);
    return segment ?? `{${bound && leafOf(bound).name}}`;
  });
  return `/${parts.join("/")}${verb === undefined ? "" : `:${verb}`}`;
}

/** A name for what an RPC does by a binding, such as `RevokeIssuedApiKey` where the path has a fixed text for a variable. */
export function nameOfBinding({ name }: RestMethod, { template: { segments }, variables }: RestRule): string {
  const fixed = variables.flatMap(({ segment }) => segments[segment] ?? []);
  return fixed.reduce((before, text) => before.replace("ApiKey", capitalized(text).replace(/s$/, "")), name);
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The parameters of a binding in path, query and header, with their examples. */
export function parametersOf(method: RestMethod, binding: RestRule, schemas: Schemas, examples: Examples): JsonValue[] {
  const inPath = binding.variables.filter((bound) => isFree(binding, bound)).map(leafOf);
  return [
    ...inPath.map((field) => parameter("path", field, schemas, examples)),
    ...queryFields(method, binding).map((field) => parameter("query", field, schemas, examples)),
    ...headersOf(method).map((name) => ({ $ref: `#/components/parameters/${name}` })),
  ];
}

/** Whether a variable takes more than one fixed text. */
function isFree({ template: { segments } }: RestRule, { segment }: RestRule["variables"][number]): boolean {
  return segments[segment] === undefined;
}

function leafOf({ path }: RestRule["variables"][number]): DescField {
  const leaf = path.at(-1);
  if (leaf === undefined) throw new Error("an empty field path");
  return leaf;
}

function queryFields({ input }: RestMethod, { body, variables }: RestRule): readonly DescField[] {
  if (body.kind === "whole") return [];
  const elsewhere = new Set([
    ...variables.map(({ path: [first] }) => first),
    body.kind === "none" ? undefined : body.field,
  ]);
  return input.fields.filter((field) => !elsewhere.has(field));
}

function headersOf(method: RestMethod): readonly string[] {
  const isVerify = [verifyApiKey, batchVerifyApiKeys].some((other) => other === method);
  const isJwks = method === DerivedKeysService.method.getJwks;
  const isStream = method.methodKind === "server_streaming";
  return [
    "X-Request-Id",
    ...(isStream ? ["Last-Event-ID"] : []),
    ...(isVerify ? ["Cache-Control"] : []),
    ...(isJwks ? ["If-None-Match"] : []),
  ];
}

function parameter(place: "path" | "query", field: DescField, schemas: Schemas, all: Examples): JsonObject {
  const { description: ofField = "", ...schema } = schemas.field(field, "input");
  const isMask = isFieldMask(field);
  const description = isMask ? `${ofField} ${MASK_WORDING}` : ofField;
  const examples = examplesOf(field, all);
  return {
    name: field.name,
    in: place,
    required: place === "path" || isMask || isRequired(field),
    ...(description === "" ? {} : { description }),
    schema,
    ...(Object.keys(examples).length > 0 ? { examples } : {}),
  };
}

/** Clients of openapi-generator send unset lists and maps as empty ones: without a mask that clears them. */
const MASK_WORDING =
  "Required here, because generated clients may send fields that were not set as empty ones. The server accepts a request without it.";

/** By the names of the examples. A viewer fills in the first one, so before those of a filter is one that changes nothing. */
function examplesOf(field: DescField, all: Examples): JsonObject {
  const named = Object.entries(all).flatMap(([name, { summary, parameters }]) => {
    const value = parameters?.[field.name];
    return value === undefined ? [] : [[name, { summary, value }] as const];
  });
  const neutral = NEUTRAL_VALUES[field.name];
  const first = neutral === undefined ? [] : [["default", { summary: "The default", value: neutral }] as const];
  return Object.fromEntries([...first, ...named]);
}

/** Values that do the same as no value. */
const NEUTRAL_VALUES: Readonly<Record<string, JsonValue>> = { page_size: 50, filter: "" };

/** The request body of a binding; undefined where it has none. An empty body is a request without fields. */
export function bodyOf(
  method: RestMethod,
  binding: RestRule,
  schemas: Schemas,
  examples: Examples,
): JsonObject | undefined {
  const schema = bodySchema(method, binding, schemas);
  if (schema === undefined) return undefined;
  const shown = Object.entries(examples).flatMap(([name, { summary, body }]) =>
    body === undefined ? [] : [[name, { summary, value: body }] as const],
  );
  return { required: isBodyNeeded(method, binding), content: json(schema, Object.fromEntries(shown)) };
}

function isBodyNeeded({ input }: RestMethod, { variables }: RestRule): boolean {
  const inPath = new Set(variables.map(({ path: [first, ...inner] }) => (inner.length === 0 ? first : undefined)));
  return input.fields.some((field) => isRequired(field) && !inPath.has(field));
}

/** Always a component, as generators invent the names of other schemas. */
function bodySchema(method: RestMethod, binding: RestRule, schemas: Schemas): JsonObject | undefined {
  const { body, variables } = binding;
  const inPath = new Set(variables.map(leafOf));
  const call = nameOfBinding(method, binding);
  switch (body.kind) {
    case "none":
      return undefined;
    case "whole":
      if (inPath.size === 0) return schemas.ref(method.input, "input");
      return schemas.body(`${call}Body`, `The body of ${call}.`, method.input, inPath);
    case "field":
      throw new Error(`${method}: no RPC has a body of one field only`);
    case "either": {
      const { message } = body.field;
      if (message === undefined) throw new Error(`${method}: the body is no message`);
      return schemas.body(`${call}Body`, updateWording(body.field), message, inPath);
    }
  }
}

/** The wrapped form is in words only: generators make one unusable class of a `oneOf`. */
function updateWording({ name }: DescField): string {
  return (
    "The new values of the fields that `update_mask` names. The server also accepts the same wrapped, " +
    `with the mask in it: \`{"${name}": {"name": "new name"}, "update_mask": "name"}\`.`
  );
}

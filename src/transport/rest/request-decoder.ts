import {
  create,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type Message,
  type Registry,
} from "@bufbuild/protobuf";
import { invalidArgument } from "../../domain/errors.ts";
import { isJsonObject } from "../../lib/json.ts";
import type { MaybePromise } from "../../lib/maybe-promise.ts";
import { findField, nameIn, valueIn } from "../json/fields.ts";
import { parseJson, readJson, readJsonOfAnyLength, requireObject } from "../json/reader.ts";
import { BODY, type ValueLimits } from "../json/scan.ts";
import type { BodyRule, PathBinding, RestRule } from "./http-rule.ts";
import { queryReader } from "./query.ts";
import { isFieldMask, updateMaskAdder, withFieldMasks } from "./update-mask.ts";

/** An HTTP request in the parts that google/api/http.proto makes a message of. */
export interface RequestParts {
  /** The segments of the path, percent-decoded and without the verb. */
  readonly segments: readonly string[];
  /** The raw query string, without the question mark. */
  readonly query: string;
  /** If it is empty, the request is without the fields of the body. */
  readonly body: Uint8Array;
}

/** Throws `INVALID_ARGUMENT` naming the field by its path in the request message, such as `issued_api_key.scopes[2]`. */
export type DecodeRequest = (parts: RequestParts) => MaybePromise<Message>;

/** All that can be known of a binding before a request comes is worked out here, once. */
export function requestDecoder(
  desc: DescMessage,
  binding: RestRule,
  limits: ValueLimits,
  registry: Registry,
): DecodeRequest {
  const { body: rule, variables } = binding;
  const readQuery = queryReader(desc, binding);
  const addUpdateMask = updateMaskAdder(desc, binding);
  const masks = desc.fields.filter(isFieldMask);
  const isOfBody = rule.kind === "whole" && masks.length === 0;
  return ({ segments, query, body }) => {
    if (variables.length === 0 && query === "") {
      if (body.length === 0) return create(desc);
      if (isOfBody) return readJsonOfAnyLength(desc, body, limits, registry);
    }
    let json = body.length === 0 ? {} : bodyToRequestJson(desc, rule, body, limits);
    if (query !== "") json = readQuery(json, query);
    json = withFieldMasks(masks, json);
    for (const variable of variables)
      json = withVariable(json, variable.path, segments[variable.segment] ?? "", variable.path);
    return readJson(desc, addUpdateMask?.(json) ?? json, registry);
  };
}

/** The JSON of the request message that a body makes by its rule. Throws `INVALID_ARGUMENT` if the body does not fit the rule. */
function bodyToRequestJson(desc: DescMessage, rule: BodyRule, bytes: Uint8Array, limits: ValueLimits): JsonObject {
  if (rule.kind === "none") throw invalidArgument(BODY, "must be empty");
  const body = parseJson(bytes, limits, rule.kind === "whole" ? desc : undefined);
  if (rule.kind === "whole" || (rule.kind === "either" && isWrapped(desc, rule.field, body)))
    return requireObject(body);
  return { [rule.field.name]: body };
}

/**
 * Whether the body is the whole request rather than its one field. `{}` is that field, without values. A name that only the
 * request knows tells, so that a misspelt one beside it is found where it stands.
 */
function isWrapped(desc: DescMessage, { message: resource }: DescField, body: JsonValue): boolean {
  if (!isJsonObject(body)) return false;
  const names = Object.keys(body);
  const ofRequest = names.filter((name) => findField(desc, name) !== undefined);
  const isOfResource = (name: string) => resource !== undefined && findField(resource, name) !== undefined;
  return ofRequest.length > 0 && (ofRequest.length === names.length || !ofRequest.every(isOfResource));
}

/**
 * The JSON of the request with a field that the path binds. It may stand in the body as well, but only with the same value. What is of
 * another type is left for `readJson` to refuse.
 */
function withVariable(
  json: JsonObject,
  [field, ...inner]: PathBinding["path"],
  text: string,
  path: PathBinding["path"],
): JsonObject {
  if (field === undefined) throw new Error("an empty field path");
  const given = valueIn(json, field);
  const name = nameIn(json, field);
  if (inner.length > 0) {
    if (given !== null && !isJsonObject(given)) return json;
    return { ...json, [name]: withVariable(given ?? {}, inner, text, path) };
  }
  if (given !== null && typeof given !== "string") return json;
  if (given !== null && given !== "" && given !== text) {
    throw invalidArgument(path.map((one) => one.name).join("."), "is not the same in the body as in the path");
  }
  return { ...json, [name]: text };
}

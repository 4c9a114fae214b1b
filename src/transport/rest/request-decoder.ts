import type { DescField, DescMessage, JsonObject, JsonValue, Message } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import type { Rpc, StreamRpc } from "../../api/rpc.ts";
import { derivedMask } from "../../api/v2alpha1/update-mask.ts";
import { invalidArgument } from "../../domain/errors.ts";
import { isJsonObject } from "../../lib/json.ts";
import { findField, nameIn, valueIn } from "../wire/json/fields.ts";
import { BODY, parseJson, type ValueLimits, valueLimits } from "../wire/json/parse.ts";
import { readMessage } from "../wire/json/reader.ts";
import type { BodyRule, RestRule } from "./http-rule.ts";
import { queryReader } from "./query.ts";

/** The parts of an HTTP request that google/api/http.proto maps to a message. */
interface RequestParts {
  /** The segments of the path, percent-decoded and without the verb. */
  readonly segments: readonly string[];
  /** The raw query string, without the question mark. */
  readonly query: string;
  /** If it is empty, the body fields are not set. */
  readonly body: Uint8Array;
}

/**
 * Returns a function that throws `INVALID_ARGUMENT` naming the field by its path in the request message, such as `issued_api_key.scopes[2]`.
 * Everything that depends only on the rule is computed once.
 */
export function requestDecoder(rpc: Rpc | StreamRpc, rule: RestRule) {
  const desc = rpc.method.input;
  const limits = valueLimits(rpc.maxRequestBytes);
  const readQuery = queryReader(desc, rule);
  const read = updateReader(desc, rule, (json) => readMessage(desc, json));
  return ({ segments, query, body }: RequestParts): Message => {
    let json = body.length === 0 ? {} : bodyToRequest(desc, rule.body, body, limits);
    // Without fields no parameter can be a misspelt field: caches and key loaders add their own, such as kid to the JWKS.
    if (query !== "" && desc.fields.length > 0) json = readQuery(json, query);
    for (const { path, fieldPath, segment } of rule.variables)
      json = withVariable(json, path, segments[segment] ?? "", fieldPath);
    return read(json);
  };
}

/** Returns the JSON of the request message for a body. Throws `INVALID_ARGUMENT` if it does not match the rule. */
function bodyToRequest(desc: DescMessage, rule: BodyRule, bytes: Uint8Array, limits: ValueLimits): JsonObject {
  if (rule.kind === "none") throw invalidArgument(BODY, "must be empty", "VALUE_NOT_ALLOWED");
  const body = parseJson(bytes, limits);
  const isRequest = rule.field === undefined || (rule.kind === "either" && isWrapped(desc, rule.field, body));
  if (!isRequest) return { [rule.field.name]: body };
  if (!isJsonObject(body)) throw invalidArgument(BODY, "must be a JSON object", "WRONG_TYPE");
  return body;
}

/**
 * Returns whether the body is the whole request rather than its one field. `{}` is that field, without values. A name that only the
 * request has decides, so that a misspelt name beside it is reported at its position.
 */
function isWrapped(desc: DescMessage, { message: resource }: DescField, body: JsonValue): boolean {
  if (!isJsonObject(body)) return false;
  const names = Object.keys(body);
  const ofRequest = names.filter((name) => findField(desc, name) !== undefined);
  const isOfResource = (name: string) => resource !== undefined && findField(resource, name) !== undefined;
  return ofRequest.length > 0 && (ofRequest.length === names.length || !ofRequest.every(isOfResource));
}

/** Sets a field from the path. The body may have it too, with the same value; `readMessage` rejects a value of another type. */
function withVariable(json: JsonObject, [field, ...inner]: readonly DescField[], text: string, at: string): JsonObject {
  if (field === undefined) throw new Error("an empty field path");
  const existing = valueIn(json, field);
  const name = nameIn(json, field);
  if (inner.length > 0) {
    if (existing !== null && !isJsonObject(existing)) return json;
    return { ...json, [name]: withVariable(existing ?? {}, inner, text, at) };
  }
  if (existing !== null && typeof existing !== "string") return json;
  if (existing !== null && existing !== "" && existing !== text) {
    throw invalidArgument(at, "has different values in the path and in the body", "VALUE_NOT_ALLOWED");
  }
  return { ...json, [name]: text };
}

/**
 * Returns a function that reads the JSON of a request. AIP-134: a PATCH without `update_mask` changes the fields present in the body.
 * Protobuf cannot distinguish an empty list from an absent one, but JSON can: `{"scopes": []}` clears the scopes. A mask with the present
 * fields is therefore added. Fields bound by the path identify the resource and are excluded. The JSON of another rule is read unchanged.
 */
function updateReader(desc: DescMessage, rule: RestRule, read: (json: JsonObject) => Message): typeof read {
  const mask = desc.fields.find((field) => field.name === "update_mask" && isFieldMask(field));
  const messages = desc.fields.filter((field) => field.fieldKind === "message" && !isFieldMask(field));
  const resource = rule.body.field ?? (messages.length === 1 ? messages[0] : undefined);
  if (rule.httpMethod !== "PATCH" || mask === undefined || resource?.message === undefined) return read;
  const bound = new Set(rule.variables.map(({ path }) => path.at(-1)));
  const { message } = resource;
  return (json) => {
    const stated = valueIn(json, mask);
    const value = valueIn(json, resource);
    if ((stated !== null && stated !== "") || !isJsonObject(value)) return read(json);
    const fields = Object.keys(value).map((name) => findField(message, name));
    const paths = fields.flatMap((field) => (field === undefined || bound.has(field) ? [] : [field.name]));
    const request = read(json);
    if (paths.length > 0) Reflect.set(request, mask.localName, derivedMask(paths));
    return request;
  };
}

export function isFieldMask({ message }: DescField): boolean {
  return message?.typeName === FieldMaskSchema.typeName;
}

import { type DescMessage, fromJson, type JsonObject, type JsonReadOptions, type Message } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { invalidArgument } from "../../errors.ts";
import type { Binding, PathBinding } from "./binding.ts";
import { type FieldPath, findOwner, formatFieldPath, leafOf, notOfForm, setFromJson } from "./field-path.ts";
import { BODY, MAX_JSON_DEPTH } from "./json-text.ts";
import { findViolation } from "./json-violation.ts";
import { readVariable } from "./path-template.ts";
import { queryReader } from "./query.ts";
import { updateMaskFiller } from "./update-mask.ts";
import { valueForm } from "./value-form.ts";

/** An HTTP request in the parts that google/api/http.proto makes a message of. */
export interface RequestParts {
  /** The raw segments of the path, without the verb. */
  readonly segments: readonly string[];
  /** The raw query string, without the question mark. */
  readonly query: string;
  readonly body: Uint8Array;
}

/** Throws `INVALID_ARGUMENT` naming the field by its path in the request message, such as `issued_api_key.scopes[2]`. */
export type DecodeRequest = (parts: RequestParts) => Message;

/** What a body makes of the request; `json` is that of the request, for its update mask. Throws as `DecodeRequest` does. */
export type ReadBody = (bytes: Uint8Array) => { readonly request: Message; readonly json: JsonObject };

/** A message decoder may count a level of JSON twice, so its limit lies above that of the JSON. */
export const RECURSION_LIMIT = 2 * MAX_JSON_DEPTH;

/** All that can be known of a binding before a request comes is worked out here, once. */
export function requestDecoder(desc: DescMessage, binding: Binding, readBody: ReadBody): DecodeRequest {
  const { body: bodyRule, variables } = binding;
  const readQuery = queryReader(desc, takenFields(binding), bodyRule.kind === "whole");
  const fillUpdateMask = updateMaskFiller(desc, binding);
  const isOfBody = variables.length === 0 && fillUpdateMask === undefined;
  return ({ segments, query, body }) => {
    const { request, json } = readBody(body);
    if (isOfBody && query === "") return request;
    const reflected = reflect(desc, request);
    if (query !== "") readQuery(reflected, query);
    for (const variable of variables) bindPath(reflected, variable, segments);
    fillUpdateMask?.(reflected, json);
    return request;
  };
}

function takenFields({ body, variables }: Binding): readonly FieldPath[] {
  const ofPath = variables.map(({ path }) => path);
  return body.kind === "field" || body.kind === "either" ? [...ofPath, [body.field]] : ofPath;
}

/** The message of a JSON object. Throws `INVALID_ARGUMENT` naming the field where it is none. */
export function readJson(desc: DescMessage, json: JsonObject, options: JsonReadOptions): Message {
  try {
    return fromJson(desc, json, options);
  } catch {
    const { field, description } = findViolation(desc, json, options) ?? { field: BODY, description: "is not valid" };
    throw invalidArgument(field, description);
  }
}

/** A field that the path binds may stand in the body as well, but only with the same value. */
function bindPath(request: ReflectMessage, { variable, path }: PathBinding, segments: readonly string[]): void {
  const text = readVariable(variable, segments);
  const json = text === undefined ? undefined : valueForm(leafOf(path))?.fromText(text);
  if (json === undefined) throw notOfForm(path);
  const inBody = setValue(request, path);
  setFromJson(request, path, json);
  if (inBody !== undefined && !isSameValue(inBody, setValue(request, path))) {
    throw invalidArgument(formatFieldPath(path), "is not the same in the body as in the path");
  }
}

function setValue(request: ReflectMessage, path: FieldPath): unknown {
  const leaf = leafOf(path);
  const owner = findOwner(request, path);
  return owner?.isSet(leaf) ? owner.get(leaf) : undefined;
}

function isSameValue(a: unknown, b: unknown): boolean {
  return a instanceof Uint8Array && b instanceof Uint8Array ? Buffer.compare(a, b) === 0 : a === b;
}

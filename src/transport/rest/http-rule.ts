import {
  type DescField,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  getOption,
  hasOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { http } from "../../../gen/google/api/annotations_pb.js";
import type { HttpRule } from "../../../gen/google/api/http_pb.js";
import { parsePathTemplate } from "./path-router.ts";

/** The mapping of the request body: nothing, the whole request, one field of it, or either of the latter, depending on the JSON. */
export type BodyRule =
  | { readonly kind: "none" | "whole"; readonly field?: undefined }
  | { readonly kind: "field" | "either"; readonly field: DescField };

/** The methods that may have a rule. */
export type RestMethod = DescMethodUnary | DescMethodServerStreaming;

export type RestRule = ReturnType<typeof readRule>;

/**
 * Returns the rules of an RPC by its `google.api.http` annotation; none without an annotation. A rule with the body `*` and a following one that
 * differs only in having a body field become one rule with the body "either". Throws `Error` if the annotation is invalid or unsupported.
 */
export function readRestRules(method: RestMethod): readonly RestRule[] {
  if (!hasOption(method, http)) return [];
  const first = getOption(method, http);
  if (first.additionalBindings.some(({ additionalBindings }) => additionalBindings.length > 0)) {
    throw new Error(`${method}: additional_bindings must not be nested`);
  }
  const rules: RestRule[] = [];
  for (const next of [first, ...first.additionalBindings].map((rule) => readRule(method, rule))) {
    const last = rules.at(-1);
    const hasSamePath = last?.httpMethod === next.httpMethod && last.template.text === next.template.text;
    if (hasSamePath && last.body.kind === "whole" && next.body.kind === "field") {
      rules[rules.length - 1] = { ...next, body: { ...next.body, kind: "either" } };
    } else rules.push(next);
  }
  return rules;
}

function readRule(method: RestMethod, { pattern, body, responseBody }: HttpRule) {
  if (pattern.case === undefined || pattern.case === "custom" || responseBody !== "") {
    throw new Error(`${method}: the HTTP rule must have a standard HTTP method and must not have response_body`);
  }
  const template = parsePathTemplate(pattern.value);
  const variables = template.variables.map((variable) => ({ ...variable, path: pathOf(method, variable.fieldPath) }));
  return { httpMethod: pattern.case.toUpperCase(), template, variables, body: readBodyRule(method, body) };
}

/** The types whose JSON is a string (ProtoJSON). */
const AS_TEXT: ReadonlySet<ScalarType> = new Set([ScalarType.STRING, ScalarType.INT64]);

/** Returns the path from a field of the request to the field of a nested message. */
function pathOf(method: RestMethod, fieldPath: string): readonly DescField[] {
  let parent: DescMessage | undefined = method.input;
  const path = fieldPath.split(".").flatMap((name) => {
    const field = parent?.fields.find((candidate) => candidate.name === name);
    parent = field?.fieldKind === "message" ? field.message : undefined;
    return field ?? [];
  });
  const leaf = path.at(-1);
  const isComplete = path.length === fieldPath.split(".").length;
  if (!isComplete || leaf?.fieldKind !== "scalar" || !AS_TEXT.has(leaf.scalar)) {
    throw new Error(`${method}: the path variable ${fieldPath} is neither a string nor an int64 field of the request`);
  }
  return path;
}

function readBodyRule({ input }: RestMethod, body: string): BodyRule {
  if (body === "") return { kind: "none" };
  if (body === "*") return { kind: "whole" };
  const field = input.fields.find(({ name }) => name === body);
  if (field === undefined) throw new Error(`${input.typeName} has no field ${body}`);
  return { kind: "field", field };
}

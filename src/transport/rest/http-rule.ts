import {
  type DescField,
  type DescMessage,
  type DescMethodUnary,
  getOption,
  hasOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { http } from "../../../gen/google/api/annotations_pb.js";
import type { HttpRule } from "../../../gen/google/api/http_pb.js";
import { type PathTemplate, parsePathTemplate, type TemplateVariable } from "./path-router.ts";

/** The mapping of the request body: nothing, the whole request, one field of it, or either of the latter, depending on the JSON. */
export type BodyRule =
  | { readonly kind: "none" }
  | { readonly kind: "whole" }
  | { readonly kind: "field" | "either"; readonly field: DescField };

export interface PathBinding extends TemplateVariable {
  /** Path from a field of the request to a field of a nested message. */
  readonly path: readonly DescField[];
}

/** A `google.api.HttpRule` with resolved fields. */
export interface RestRule {
  readonly httpMethod: string;
  readonly template: PathTemplate;
  readonly variables: readonly PathBinding[];
  readonly body: BodyRule;
}

/**
 * Returns the rules of an RPC by its `google.api.http` annotation; none without an annotation. A rule with the body `*` and a following one that
 * differs only in having a body field become one rule with the body "either". Throws `Error` if the annotation is invalid or unsupported.
 */
export function readRestRules(method: DescMethodUnary): readonly RestRule[] {
  if (!hasOption(method, http)) return [];
  const rule = getOption(method, http);
  if (rule.additionalBindings.some(({ additionalBindings }) => additionalBindings.length > 0)) {
    throw new Error(`${method}: additional_bindings must not be nested`);
  }
  const bindings: RestRule[] = [];
  for (const next of [rule, ...rule.additionalBindings].map((binding) => readBinding(method, binding))) {
    const last = bindings.at(-1);
    const hasSamePath = last?.httpMethod === next.httpMethod && last.template.text === next.template.text;
    if (hasSamePath && last.body.kind === "whole" && next.body.kind === "field") {
      bindings[bindings.length - 1] = { ...next, body: { ...next.body, kind: "either" } };
    } else bindings.push(next);
  }
  return bindings;
}

function readBinding(method: DescMethodUnary, { pattern, body, responseBody }: HttpRule): RestRule {
  if (pattern.case === undefined || pattern.case === "custom" || responseBody !== "") {
    throw new Error(`${method}: the HTTP rule must have a standard HTTP method and must not have response_body`);
  }
  const template = parsePathTemplate(pattern.value);
  const variables = template.variables.map((variable) => bindVariable(method, variable));
  return { httpMethod: pattern.case.toUpperCase(), template, variables, body: readBodyRule(method, body) };
}

function bindVariable(method: DescMethodUnary, { fieldPath, segment }: TemplateVariable): PathBinding {
  let parent: DescMessage | undefined = method.input;
  const path = fieldPath.split(".").map((name) => {
    const field = parent?.fields.find((candidate) => candidate.name === name);
    parent = field?.fieldKind === "message" ? field.message : undefined;
    return field;
  });
  const leaf = path.at(-1);
  if (
    !path.every((field) => field !== undefined) ||
    leaf?.fieldKind !== "scalar" ||
    leaf.scalar !== ScalarType.STRING
  ) {
    throw new Error(`${method}: the path variable ${fieldPath} is not a string field of the request`);
  }
  return { fieldPath, segment, path };
}

function readBodyRule({ input }: DescMethodUnary, body: string): BodyRule {
  if (body === "") return { kind: "none" };
  if (body === "*") return { kind: "whole" };
  const field = input.fields.find(({ name }) => name === body);
  if (field === undefined) throw new Error(`${input.typeName} has no field ${body}`);
  return { kind: "field", field };
}

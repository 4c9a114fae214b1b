import { type DescField, type DescMessage, type DescMethodUnary, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../../../gen/google/api/annotations_pb.js";
import type { HttpRule } from "../../../gen/google/api/http_pb.js";
import { type FieldPath, findFieldPath, leafOf } from "./field-path.ts";
import { type PathTemplate, parsePathTemplate, type TemplateVariable } from "./path-template.ts";

/** What the request body holds: nothing, the whole request, one field of it, or either of the latter as its JSON shows. */
export type BodyRule =
  | { readonly kind: "none" }
  | { readonly kind: "whole" }
  | { readonly kind: "field" | "either"; readonly field: DescField };

export interface PathBinding {
  readonly variable: TemplateVariable;
  readonly path: FieldPath;
}

/** A `google.api.HttpRule` whose names are fields. */
export interface Binding {
  /** Upper case, or `*` for every method. */
  readonly httpMethod: string;
  readonly template: PathTemplate;
  readonly variables: readonly PathBinding[];
  readonly body: BodyRule;
  /** The field that the response body holds; undefined for the whole response. */
  readonly responseBody: DescField | undefined;
}

/**
 * The bindings of an RPC by its `google.api.http` annotation; none if it has none. Two that differ only in that one has the
 * body `*` and the other a field are one, of body "either". Throws `Error` if the annotation is wrong.
 */
export function readBindings(method: DescMethodUnary): readonly Binding[] {
  if (!hasOption(method, http)) return [];
  const rule = getOption(method, http);
  const rules = [rule, ...rule.additionalBindings];
  if (rule.additionalBindings.some(({ additionalBindings }) => additionalBindings.length > 0)) {
    throw new Error(`${method}: additional_bindings within additional_bindings`);
  }
  return mergeByBody(rules.map((one) => readBinding(method, one)));
}

function readBinding(method: DescMethodUnary, rule: HttpRule): Binding {
  const { httpMethod, path } = readPattern(method, rule);
  const template = parsePathTemplate(path);
  return {
    httpMethod,
    template,
    variables: template.variables.map((variable) => bindVariable(method, variable)),
    body: readBodyRule(method, rule.body),
    responseBody: rule.responseBody === "" ? undefined : requireField(method, method.output, rule.responseBody),
  };
}

function readPattern(method: DescMethodUnary, { pattern }: HttpRule): { httpMethod: string; path: string } {
  if (pattern.case === undefined) throw new Error(`${method}: an HTTP rule without a pattern`);
  if (pattern.case === "custom") return { httpMethod: pattern.value.kind.toUpperCase(), path: pattern.value.path };
  return { httpMethod: pattern.case.toUpperCase(), path: pattern.value };
}

function bindVariable(method: DescMethodUnary, variable: TemplateVariable): PathBinding {
  const path = findFieldPath(method.input, variable.fieldPath);
  const kind = path === undefined ? undefined : leafOf(path).fieldKind;
  if (path === undefined || (kind !== "scalar" && kind !== "enum")) {
    throw new Error(`${method}: the path variable ${variable.fieldPath} is no single primitive field of the request`);
  }
  return { variable, path };
}

function readBodyRule(method: DescMethodUnary, body: string): BodyRule {
  if (body === "") return { kind: "none" };
  if (body === "*") return { kind: "whole" };
  return { kind: "field", field: requireField(method, method.input, body) };
}

function requireField(method: DescMethodUnary, message: DescMessage, name: string): DescField {
  const field = message.fields.find((candidate) => candidate.name === name);
  if (field === undefined) throw new Error(`${method}: ${message.typeName} has no field ${name}`);
  return field;
}

function mergeByBody(bindings: readonly Binding[]): readonly Binding[] {
  const merged: Binding[] = [];
  for (const binding of bindings) {
    const index = merged.findIndex((other) => isSameBut(other, binding));
    const body = merged[index] === undefined ? undefined : eitherBody(merged[index].body, binding.body);
    // Where they cannot be merged, the router refuses the second.
    if (body === undefined) merged.push(binding);
    else merged[index] = { ...binding, body };
  }
  return merged;
}

function isSameBut(a: Binding, b: Binding): boolean {
  return a.httpMethod === b.httpMethod && a.template.text === b.template.text && a.responseBody === b.responseBody;
}

function eitherBody(a: BodyRule, b: BodyRule): BodyRule | undefined {
  if (a.kind === "whole" && b.kind === "field") return { kind: "either", field: b.field };
  if (a.kind === "field" && b.kind === "whole") return { kind: "either", field: a.field };
  return undefined;
}

import { readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { RFC_3339_UTC } from "../../support/conformance.ts";
import type { Json } from "../../support/rest.ts";

const FORM = "application/x-www-form-urlencoded";

/** docs/openapi.json */
export const document: Json = JSON.parse(readFileSync(new URL("../../../docs/openapi.json", import.meta.url), "utf8"));

export interface Operation {
  readonly httpMethod: string;
  readonly path: string;
  readonly operation: Json;
}

export const operations: readonly Operation[] = Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
  Object.entries<Json>(methods).map(([httpMethod, operation]) => ({
    httpMethod: httpMethod.toUpperCase(),
    path,
    operation,
  })),
);

const ajv = new Ajv2020({
  strict: false,
  allErrors: true,
  formats: { "date-time": RFC_3339_UTC, int32: true, int64: true },
});
// Open for clients; this release sends no other values.
ajv.addKeyword({
  keyword: "x-extensible-enum",
  validate: (values: readonly Json[], value: Json) => values.includes(value),
});
// Schemas are open, as responses may grow and generators need it of requests; all current members must be described.
ajv.addSchema({ $id: "keyhold", components: { schemas: closed(document.components.schemas) } });

/** Validates against a schema of the document. */
export function validator(schema: Json): ValidateFunction {
  return ajv.compile(JSON.parse(JSON.stringify(closed(schema)).replaceAll('"#/', '"keyhold#/')));
}

function closed(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const members = Object.fromEntries(Object.entries(schema).map(([name, member]) => [name, closed(member)]));
  const isOpen =
    schema.type === "object" && schema.properties !== undefined && schema.additionalProperties === undefined;
  return isOpen ? { ...members, unevaluatedProperties: false } : members;
}

/** A named example: the request and the response. */
export interface Example extends Operation {
  readonly name: string;
  readonly parameters: Readonly<Record<string, { readonly in: "path" | "query"; readonly value: string | number }>>;
  readonly body: Json;
  /** Whether the body is sent as a form. */
  readonly isForm: boolean;
  readonly status: number;
  readonly response: Json;
}

export const examples: readonly Example[] = operations.flatMap((one) => {
  const { operation } = one;
  return Object.entries<Json>(operation.responses).flatMap(([status, response]) =>
    Object.entries<Json>(contentOf(response)?.examples ?? {})
      .filter(([, example]) => example.$ref === undefined)
      .map(([name, { value }]) => ({
        ...one,
        name,
        parameters: parametersOf(operation, name),
        ...requestOf(operation, name),
        status: Number(status),
        response: value,
      })),
  );
});

function parametersOf(operation: Json, name: string): Example["parameters"] {
  const found = (operation.parameters ?? []).filter(({ examples }: Json) => examples?.[name] !== undefined);
  return Object.fromEntries(found.map((one: Json) => [one.name, { in: one.in, value: one.examples[name].value }]));
}

function requestOf({ requestBody }: Json, name: string): Pick<Example, "body" | "isForm"> {
  const isForm = requestBody?.content?.[FORM] !== undefined;
  return { body: contentOf(requestBody)?.examples?.[name]?.value, isForm };
}

/** The JSON of a request or response, or the form. */
export function contentOf(part: Json): Json {
  return part?.content?.["application/json"] ?? part?.content?.[FORM];
}

/** The name of the component that a schema refers to. */
export function refOf(schema: Json): string {
  return /^#\/components\/schemas\/(\w+)$/.exec(schema.$ref ?? "")?.[1] ?? "";
}

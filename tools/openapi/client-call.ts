import { type DescField, type DescMessage, type JsonObject, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import { createKeyholdClient } from "../../src/client/index.ts";
import type { RestMethod, RestRule } from "../../src/transport/rest/http-rule.ts";
import { SAMPLE_SERVER } from "./code-samples.ts";
import type { Example } from "./examples/example.ts";
import { nameOf } from "./schema.ts";

const SERVICES = new Set(Object.keys(createKeyholdClient({ baseUrl: SAMPLE_SERVER })));

/** Returns a program that sends an example with `@keyhold/client`; undefined if the client does not have the service. */
export function clientCall(method: RestMethod, binding: RestRule, example: Example, hasToken: boolean) {
  const { name } = method.parent;
  const service = name.charAt(0).toLowerCase() + name.slice(1).replace(/Service$/, "");
  if (!SERVICES.has(service)) return undefined;
  const argument = print(fieldsOf(method.input, requestOf(binding, example)));
  const enums = [...argument.matchAll(/\b([A-Z]\w+)\.[A-Z]/g)].map(([, imported]) => imported);
  const call = `keyhold.${service}.${method.localName}(${argument})`;
  const token = hasToken ? ", token: process.env.KEYHOLD_TOKEN" : "";
  return [
    ...(argument.includes("timestampFromDate") ? [`import { timestampFromDate } from "@bufbuild/protobuf/wkt";`] : []),
    `import { ${["createKeyholdClient", ...new Set(enums)].join(", ")} } from "@keyhold/client";`,
    "",
    `const keyhold = createKeyholdClient({ baseUrl: "${SAMPLE_SERVER}"${token} });`,
    method.methodKind === "server_streaming"
      ? `for await (const response of ${call}) console.log(response);`
      : `console.log(await ${call});`,
  ].join("\n");
}

/** Returns the request message in the JSON of its proto: the parts from path, query and body together. */
function requestOf({ template, variables, body }: RestRule, example: Example): JsonObject {
  const { segments } = template;
  const request = { ...example.parameters, ...nested(body.field, example.body) };
  for (const { path, segment } of variables) {
    const [first, leaf] = path;
    const fieldName = path.at(-1)?.name ?? "";
    const value = segments[segment] ?? example.parameters?.[fieldName];
    if (first === undefined || value === undefined) throw new Error(`${template.text}: the example lacks ${fieldName}`);
    delete request[fieldName];
    request[first.name] = leaf === undefined ? value : { [leaf.name]: value, ...Object(request[first.name]) };
  }
  return request;
}

/** The body as a part of the request: all of it, or the value of one field. */
function nested(field: DescField | undefined, body: JsonValue = {}): Record<string, JsonValue> {
  return field === undefined ? { ...Object(body) } : { [field.name]: body };
}

/** Returns the fields in their order, in the form that TypeScript takes. */
function fieldsOf({ fields }: DescMessage, json: JsonObject): JsonObject {
  const entries = fields.flatMap((field) => {
    const value = json[field.name];
    return value === undefined ? [] : [[field.localName, initOf(field, value)] as const];
  });
  return Object.fromEntries(entries);
}

function initOf(field: DescField, json: JsonValue): JsonValue {
  // In a query, a list of one item has no brackets.
  if (field.fieldKind === "list") return [json].flat().map((item) => singleOf(field, item));
  if (field.fieldKind !== "map") return singleOf(field, json);
  const entries = Object.entries<JsonValue>(Object(json));
  return Object.fromEntries(entries.map(([key, value]) => [key, singleOf(field, value)]));
}

function singleOf(field: DescField, json: JsonValue): JsonValue {
  const { enum: type, message } = field;
  if (type !== undefined) {
    return code(`${nameOf(type)}.${type.values.find(({ name }) => name === json)?.localName}`);
  }
  if (message === undefined) return field.scalar === ScalarType.INT64 ? code(`${json}n`) : json;
  switch (message.typeName) {
    case "google.protobuf.Timestamp":
      return code(`timestampFromDate(new Date(${JSON.stringify(json)}))`);
    case "google.protobuf.FieldMask":
      return { paths: String(json).split(",") };
    case "google.protobuf.Struct":
      return json;
    default:
      return fieldsOf(message, Object(json));
  }
}

/** Marks a string as an expression. */
function code(expression: string): string {
  return `@@${expression}@@`;
}

/** Prints a value as TypeScript: names without quotes, what is short on one line. JSON has no line feed or `":` within a string. */
function print(value: JsonValue): string {
  return JSON.stringify(value, null, 2)
    .replaceAll(/"(\w+)":/g, "$1:")
    .replaceAll(/"@@(.*)@@"/g, (_, text) => JSON.parse(`"${text}"`))
    .replaceAll(/\[\n\s+([^[\]{}]{1,100}?)\n\s+\]/g, (_, items) => `[${items.replaceAll(/\n\s+/g, " ")}]`)
    .replaceAll(/\{\n\s+([^{}\n]{1,60})\n\s*\}/g, "{ $1 }");
}

import { expect, test } from "vitest";
import { readVersion } from "../../../src/server/version.ts";
import type { Json } from "../../support/rest.ts";
import { contentOf, document, examples, operations, refOf } from "./document.ts";

/** What code generators need of the document. `npm run test:interop` compiles and runs the clients of four of them. */

const { schemas } = document.components;
const requests = operations.flatMap(({ operation }) => contentOf(operation.requestBody)?.schema ?? []);
const responses = operations.flatMap(({ operation }) =>
  Object.values(operation.responses).flatMap((one) => contentOf(one)?.schema ?? []),
);

/** The schemas below this one, with their places; a reference is followed once. */
function* within(schema: Json, place: string, seen = new Set<string>()): Generator<[place: string, schema: Json]> {
  if (typeof schema !== "object" || schema === null) return;
  yield [place, schema];
  for (const [name, part] of Object.entries<Json>(schema)) {
    if (!SCHEMA_KEYWORDS.has(name) && !place.endsWith(".properties")) continue;
    yield* within(part, `${place}.${name}`, seen);
  }
  const name = refOf(schema);
  if (name === "" || seen.has(name)) return;
  seen.add(name);
  yield* within(schemas[name], name, seen);
}

const SCHEMA_KEYWORDS = new Set([
  "properties",
  "items",
  "additionalProperties",
  "propertyNames",
  "oneOf",
  "anyOf",
  "allOf",
]);

const parts = (of: readonly Json[]) => of.flatMap((schema) => [...within(schema, "body")]);
const placesOf = (found: readonly [string, Json][]) => [...new Set(found.map(([place]) => place))];

test("the version is semantic, and that of the package", () => {
  expect(document.info.version).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
  expect(document.info.version).toBe(readVersion());
});

test("every body is a component, and no object has to be named by a generator", () => {
  const named = new Set(Object.keys(schemas));
  expect([...requests, ...responses].filter((schema) => !named.has(refOf(schema)))).toEqual([]);
  const objects = parts([...requests, ...responses]).filter(([, { properties }]) => properties !== undefined);
  expect(placesOf(objects).filter((place) => !named.has(place))).toEqual([]);
});

test("no component has a name that a generator would have to change", () => {
  const taken = ["Error", "Status", "Object", "Request", "Response", "Result", "Option"];
  expect(Object.keys(schemas).filter((name) => taken.includes(name) || !/^[A-Z]\w*[A-Za-z]$/.test(name))).toEqual([]);
  expect(operations.filter(({ operation }) => /\d$/.test(operation.operationId))).toEqual([]);
});

test("no schema is a union", () => {
  const unions = parts([...requests, ...responses]).filter(([, one]) => one.oneOf ?? one.anyOf ?? one.allOf ?? one.not);
  expect(placesOf(unions)).toEqual([]);
});

test("objects are open in requests too, and the description says what the server rejects", () => {
  const closed = parts([...requests, ...responses]).filter(([, one]) => one.additionalProperties === false);
  expect(placesOf(closed)).toEqual([]);
  expect(document.info.description).toMatch(/A request with an unknown field.* is rejected/s);
});

test("enums are closed in requests, without a name for no value, and open in responses", () => {
  const enums = parts(requests).filter(([, one]) => one.enum !== undefined);
  expect(placesOf(enums)).toEqual([
    "RateLimitEnforcement",
    "OutagePolicy",
    "QuotaPeriod",
    "HashAlgorithm",
    "TextEncoding",
    "TokenAlgorithm",
    "RevocationReason",
    ...["Revoke", "Disable", "Enable"].map((verb) => `${verb}ApiKeyBody.properties.collection`),
    "KeyPagePermission",
  ]);
  expect(enums.filter(([, one]) => one.enum.includes(""))).toEqual([]);
  for (const required of ["TokenAlgorithm", "QuotaPeriod"])
    expect(JSON.stringify(schemas[required])).not.toContain("_UNSPECIFIED");
  const closed = parts(responses).filter(([, one]) => one.enum !== undefined || one.const !== undefined);
  expect(placesOf(closed)).toEqual([]);
  const open = parts(responses).filter(([, one]) => one["x-extensible-enum"] !== undefined);
  expect(placesOf(open)).toContain("VerifyApiKeyResponse.properties.error_code");
  for (const [place, { description }] of open) expect(description, place).toContain("later releases may add values");
});

test("the values of an open enum are constants of a component", () => {
  const listed = (name: string) => schemas[name].enum;
  const { status, revocation_reason } = schemas.IssuedApiKey.properties;
  expect(status["x-extensible-enum"]).toEqual(listed("KeyStatus"));
  expect(revocation_reason["x-extensible-enum"]).toEqual(listed("RevocationReason"));
  expect(schemas.ErrorDetail.properties.reason["x-extensible-enum"]).toEqual(listed("ErrorReason"));
  expect(schemas.FieldViolation.properties.reason["x-extensible-enum"]).toEqual(listed("FieldViolationReason"));
});

test("a list that may not be empty is required", () => {
  const optional = parts(requests).flatMap(([place, { properties = {}, required = [] }]) =>
    Object.entries<Json>(properties).flatMap(([name, { minItems = 0 }]) =>
      minItems > 0 && !required.includes(name) ? [`${place}.${name}`] : [],
    ),
  );
  expect(optional).toEqual([]);
});

test("an update requires update_mask, as clients send unset lists and maps as empty ones", () => {
  const updates = operations.filter(({ httpMethod }) => httpMethod === "PATCH");
  expect(updates).toHaveLength(4);
  for (const { operation } of updates) {
    const mask = operation.parameters.find(({ name }: Json) => name === "update_mask");
    expect(mask).toMatchObject({ in: "query", required: true });
    expect(mask.description).toContain("The server accepts a request without it.");
  }
});

test("an example does not pin a request to its first execution", () => {
  const succeed = examples.filter(({ status }) => status === 200);
  expect(succeed.filter(({ body }) => JSON.stringify(body)?.includes("request_id"))).toEqual([]);
});

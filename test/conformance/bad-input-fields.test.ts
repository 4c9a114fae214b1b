import { type DescField, type DescMethodUnary, ScalarType } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { table, UNKNOWN_KEY_ID, useService } from "../support/conformance.ts";
import { type InvalidValue, invalidValues, normalPath, restFields, textFields } from "../support/invalid-values.ts";
import type { Answer, Json } from "../support/rest.ts";
import { expectNoChanges, REST_ROUTES, RPCS, readConnectError, rpcPath, send } from "../support/wire.ts";

const suite = useService();
expectNoChanges(suite);

const JSON_TYPE = { "content-type": "application/json" };
const WITH_BODY = REST_ROUTES.filter(({ httpMethod }) => httpMethod === "POST" || httpMethod === "PATCH");
const WITH_FIELDS = RPCS.filter(({ input }) => input.fields.length > 0);

function overConnect(rpc: DescMethodUnary, body: string | Uint8Array<ArrayBuffer>): Promise<Answer> {
  return send(suite.server.url + rpcPath(rpc), "POST", body, JSON_TYPE);
}

/** Returns the invalid bodies that REST or Connect does not reject with a 400 that names the field. */
async function notRefused(
  wrong: readonly InvalidValue[],
  ask: (body: string) => Promise<Answer>,
  read: (answer: Answer) => readonly string[],
  isNamed = (fields: readonly string[], field: string) => fields.join() === field,
): Promise<Json[]> {
  expect(wrong.length).toBeGreaterThan(0);
  const bad: Json[] = [];
  for (const { field, body } of wrong) {
    const text = JSON.stringify(body);
    const answer = await ask(text);
    const fields = read(answer).map(normalPath);
    if (answer.status !== 400 || !isNamed(fields, field)) bad.push({ field, text, fields, answer: answer.text });
  }
  return bad;
}

/** Missing fields are reported too. */
const includes = (fields: readonly string[], field: string) => fields.includes(field);

/** Unknown names may be shortened to six characters (`lib/redact-name.ts`). */
const isShortened = ([field, ...others]: readonly string[], name: string) => {
  const shown = /^\["(.{1,6})…"\]$/u.exec(field ?? "")?.[1];
  return others.length === 0 && (field === name || (shown !== undefined && name.replace(/^\["/, "").startsWith(shown)));
};

const connectFields = (answer: Answer) => {
  const { code, reason, fields } = readConnectError(answer);
  return code === "invalid_argument" && reason === "INVALID_ARGUMENT" ? fields : [];
};

describe.each(table(WITH_BODY))("$httpMethod of $rpc.name", ({ rpc, httpMethod, path }) => {
  const ask = (body: string) => send(suite.server.url + path(UNKNOWN_KEY_ID), httpMethod, body, JSON_TYPE);

  test("refuses a wrong type of every field and names it", async () => {
    expect(await notRefused(invalidValues(rpc.input), ask, restFields)).toEqual([]);
  });

  test("refuses a lone surrogate in every string", async () => {
    expect(await notRefused(loneSurrogates(rpc), ask, restFields, includes)).toEqual([]);
  });

  test("refuses unknown fields and a field under both of its names", async () => {
    expect(await notRefused(unknownFields(rpc).map(beside(rpc)), ask, restFields, isShortened)).toEqual([]);
  });
});

describe.each(table(WITH_FIELDS))("$name over Connect with JSON", (rpc) => {
  const ask = (body: string) => overConnect(rpc, body);

  test("refuses a wrong type of every field and names it", async () => {
    expect(await notRefused(invalidValues(rpc.input), ask, connectFields)).toEqual([]);
  });

  const surrogates = loneSurrogates(rpc);
  test("refuses a lone surrogate in every string", async () => {
    expect(surrogates.length === 0 ? [] : await notRefused(surrogates, ask, connectFields, includes)).toEqual([]);
  });

  test("refuses unknown fields and a field under both of its names", async () => {
    expect(await notRefused(unknownFields(rpc), ask, connectFields, isShortened)).toEqual([]);
  });
});

function loneSurrogates({ input }: DescMethodUnary): InvalidValue[] {
  return ["a\ud800b", "\udc00", "\ud83d"].flatMap((text) => textFields(input, text));
}

/** Unknown names, similar to known ones or inherited by every object, added to a complete request. */
function unknownFields({ input }: DescMethodUnary): InvalidValue[] {
  const misspelt = input.fields.flatMap(({ name }) => [`${name}s_`, name.toUpperCase(), ` ${name}`, `${name}.a`]);
  const inherited = ["constructor", "prototype", "toString", "hasOwnProperty", "valueOf"];
  const unknown = ["unknown", "", "1", "$typeName", "$unknown", ...inherited, ...misspelt];
  const shown = (name: string) => (/^[\w-]+$/.test(name) ? name : `[${JSON.stringify(name)}]`);
  return [
    ...unknown.map((name) => ({ field: shown(name), body: { [name]: "a" } })),
    ...input.fields.filter(({ name, jsonName }) => name !== jsonName).map(both),
  ];
}

/** In a PATCH, an unknown name is resolved in the resource, unless the body also has a name of the request. */
function beside({ input }: DescMethodUnary): (wrong: InvalidValue) => InvalidValue {
  const mask = input.fields.some(({ name }) => name === "update_mask") ? { update_mask: "name" } : {};
  return ({ field, body }) => ({ field, body: { ...mask, ...body } });
}

function both(field: DescField): InvalidValue {
  const body = { [field.name]: someValue(field), [field.jsonName]: someValue(field) };
  return { field: field.name, body };
}

function someValue(field: DescField): Json {
  if (field.fieldKind === "list") return [];
  if (field.fieldKind === "map") return {};
  if (field.scalar === ScalarType.BOOL) return true;
  if (field.scalar !== undefined) return field.scalar === ScalarType.STRING ? "a" : 1;
  if (field.message?.typeName === "google.protobuf.FieldMask") return "name";
  if (field.message?.typeName === "google.protobuf.Timestamp") return "2030-01-02T03:04:05Z";
  return field.enum === undefined ? {} : 1;
}

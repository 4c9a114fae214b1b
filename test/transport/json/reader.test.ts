import { inspect, isDeepStrictEqual } from "node:util";
import { createRegistry, type DescMessage, type Message, type Registry } from "@bufbuild/protobuf";
import { StructSchema, TimestampSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import {
  BatchVerifyApiKeysRequestSchema,
  DeriveTokenRequestSchema,
  VerifyApiKeyRequestSchema,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import {
  BatchCreateImportedApiKeysRequestSchema,
  CreateImportedApiKeyRequestSchema,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { CreateIssuedApiKeyRequestSchema } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { invalidArgument } from "../../../src/errors.ts";
import { isJsonObject } from "../../../src/lib/json.ts";
import { messageReaders } from "../../../src/transport/json/message-reader.ts";
import { compileJsonReader } from "../../../src/transport/json/reader.ts";
import { countStrings } from "../../../src/transport/json/scan.ts";
import { MAX_JSON_DEPTH, MAX_JSON_VALUES, parseJson } from "../../../src/transport/rest/json-text.ts";
import { RECURSION_LIMIT, readJson } from "../../../src/transport/rest/request-decoder.ts";
import { compileLibrary } from "../rest/library.ts";
import { anyJson, damaged } from "./arbitrary-json.ts";
import { messagesOf, outcomeOf, registry } from "./messages.ts";

const encode = (text: string) => new TextEncoder().encode(text);

/** The generic way, step by step. */
function reference(desc: DescMessage, bytes: Uint8Array, types: Registry = registry): Message {
  const json = parseJson(bytes);
  if (!isJsonObject(json)) throw invalidArgument("body", "must be a JSON object");
  return readJson(desc, json, { ignoreUnknownFields: false, registry: types, recursionLimit: RECURSION_LIMIT });
}

/** How many texts were a message, and how many were not. */
function compareAtRandom(desc: DescMessage, types: Registry, numRuns: number): readonly [good: number, bad: number] {
  const read = compileJsonReader(desc, { registry: types });
  let good = 0;
  let bad = 0;
  const compare = (text: string) => {
    const bytes = encode(text);
    const outcome = outcomeOf(() => read(bytes));
    const expected = outcomeOf(() => reference(desc, bytes, types));
    // Not toStrictEqual, which takes a member named "constructor" for more than that.
    if (!isDeepStrictEqual(outcome, expected)) expect.fail(`${inspect(outcome)} is not ${inspect(expected)}`);
    if ("value" in outcome) good++;
    else bad++;
  };
  const json = anyJson(desc);
  fc.assert(
    fc.property(json, damaged(json), (text, damagedText) => [text, damagedText].forEach(compare)),
    { numRuns },
  );
  return [good, bad];
}

describe("JSON as parseJson and protobuf-es read it", () => {
  test.each(messagesOf(registry).map((desc) => [desc.typeName, desc] as const))("%s", (_, desc) => {
    const [good, bad] = compareAtRandom(desc, registry, 100);
    expect(Math.min(good, bad)).toBeGreaterThan(5);
  });

  test.each([StructSchema, TimestampSchema, ValueSchema])("$typeName", (desc) => {
    compareAtRandom(desc, registry, 100);
  });

  let library: Registry;
  beforeAll(async () => {
    library = createRegistry(...(await compileLibrary()));
  });

  test("kinds that our protos do not have", () => {
    const messages = messagesOf(library).filter(({ typeName }) => typeName.startsWith("keyhold.test."));
    expect(messages.length).toBeGreaterThan(3);
    for (const desc of messages) expect(compareAtRandom(desc, library, 100)[1]).toBeGreaterThan(5);
  });
});

const credential = `kh_v1_${"aB3".repeat(35)}`;
const key = {
  name: "n",
  actor_id: "a",
  scopes: ["a", "b"],
  metadata: { team: "x", __proto: "é" },
  raw_key: "k",
  ttl: "1h",
};
const plain: readonly (readonly [DescMessage, object])[] = [
  [VerifyApiKeyRequestSchema, { credential }],
  [BatchVerifyApiKeysRequestSchema, { requests: [{ credential }, { credential: 'a"\\' }, {}] }],
  [CreateIssuedApiKeyRequestSchema, { ...key, raw_key: undefined, request_id: "r" }],
  [CreateImportedApiKeyRequestSchema, { ...key, request_id: "r" }],
  [BatchCreateImportedApiKeysRequestSchema, { requests: [key, key] }],
  [DeriveTokenRequestSchema, { credential, algorithm: "TOKEN_ALGORITHM_JWT", customClaims: { a: ["b", { c: "d" }] } }],
];

describe("a request as clients send it", () => {
  test.each(plain)("%s is read without the generic way", (desc, request) => {
    const text = JSON.stringify(request, null, 2);
    const tally = { strings: 0 };
    const message = messageReaders()(desc)(JSON.parse(text), tally);
    expect(tally.strings).toBe(countStrings(text));
    expect(message).toStrictEqual(reference(desc, encode(text)));
  });

  test("with a byte order mark is read", () => {
    const bytes = encode('\ufeff{"credential":"a"}');
    expect(compileJsonReader(VerifyApiKeyRequestSchema)(bytes)).toStrictEqual(
      reference(VerifyApiKeyRequestSchema, bytes),
    );
  });
});

describe("a request that is refused", () => {
  const nested = (depth: number) => `{"custom_claims":${'{"a":'.repeat(depth)}1${"}".repeat(depth)}}`;
  const items = (count: number) => `{"requests":[${Array(count).fill("{}").join(",")}]}`;
  const texts: readonly (readonly [DescMessage, string | Uint8Array, string])[] = [
    [VerifyApiKeyRequestSchema, '{"credential":"a","credential":"b"}', "credential: is given twice"],
    [VerifyApiKeyRequestSchema, '{"credential":"a","\\u0063redential":"b"}', "credential: is given twice"],
    [CreateImportedApiKeyRequestSchema, '{"raw_key":"a","rawKey":"b"}', "raw_key: is given twice, under two names"],
    [CreateImportedApiKeyRequestSchema, '{"metadata":{"a":"b","a":1}}', "metadata.a: is given twice"],
    [BatchVerifyApiKeysRequestSchema, '{"requests":[{"credential":"a","credential":1}]}', "is given twice"],
    [DeriveTokenRequestSchema, '{"custom_claims":{"a":[{"b":1,"b":2}]}}', "custom_claims.a[0].b: is given twice"],
    [VerifyApiKeyRequestSchema, '{"credential":"\\ud800"}', "credential: must be well-formed Unicode"],
    [VerifyApiKeyRequestSchema, '{"__proto__":{}}', "is no known field"],
    [VerifyApiKeyRequestSchema, '{"credential":"a\n"}', "body: is not JSON"],
    [VerifyApiKeyRequestSchema, "", "body: is not JSON"],
    [VerifyApiKeyRequestSchema, "[]", "body: must be a JSON object"],
    [VerifyApiKeyRequestSchema, new Uint8Array([0x7b, 0xff, 0x7d]), "body: is not UTF-8"],
    [DeriveTokenRequestSchema, nested(MAX_JSON_DEPTH), "body: is nested deeper than 100"],
    [BatchVerifyApiKeysRequestSchema, items(MAX_JSON_VALUES / 2), "body: has more than 250000 values"],
  ];

  test.each(texts)("%s %.60j", (desc, text, message) => {
    const bytes = typeof text === "string" ? encode(text) : text;
    const outcome = outcomeOf(() => compileJsonReader(desc)(bytes));
    expect(outcome).toMatchObject({ error: { message: expect.stringContaining(message), code: "INVALID_ARGUMENT" } });
    expect(outcome).toStrictEqual(outcomeOf(() => reference(desc, bytes)));
  });

  test("is none at the bounds", () => {
    const deepest = encode(nested(MAX_JSON_DEPTH - 1));
    expect(compileJsonReader(DeriveTokenRequestSchema)(deepest)).toEqual(reference(DeriveTokenRequestSchema, deepest));
    const most = compileJsonReader(BatchVerifyApiKeysRequestSchema)(encode(items(MAX_JSON_VALUES / 2 - 1)));
    expect(most).toMatchObject({ requests: expect.objectContaining({ length: MAX_JSON_VALUES / 2 - 1 }) });
  });
});

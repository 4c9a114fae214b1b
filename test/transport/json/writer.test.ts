import {
  create,
  createRegistry,
  type DescMessage,
  fromBinary,
  type Registry,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { DurationSchema, StructSchema, TimestampSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { VerifyApiKeyResponseSchema } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { isFields } from "../../../src/transport/json/unusual.ts";
import { compileJsonWriter } from "../../../src/transport/json/writer.ts";
import { compileLibrary } from "../rest/library.ts";
import { anyInit } from "./arbitrary-init.ts";
import { messagesOf, namesInProtos, outcomeOf, registry } from "./messages.ts";

/** What protobuf-es and `JSON.stringify` make of it. */
function reference(desc: DescMessage, init: object, types: Registry = registry): string {
  const options = { registry: types, useProtoFieldName: true, alwaysEmitImplicit: true };
  return JSON.stringify(toJson(desc, create(desc, { ...init }), options));
}

/** Writes plain objects, messages, and messages that came in binary, each as the reference does. */
function compareAtRandom(desc: DescMessage, types: Registry, numRuns: number): number {
  const write = compileJsonWriter(desc, { registry: types });
  let written = 0;
  const compare = (init: object) => {
    const outcome = outcomeOf(() => write(init));
    expect(outcome).toStrictEqual(outcomeOf(() => reference(desc, init, types)));
    written += "value" in outcome ? 1 : 0;
  };
  const property = fc.property(anyInit(desc), (init) => {
    if (!isFields(init)) throw new Error("no object");
    compare(init);
    const message = create(desc, init);
    compare(message);
    const bytes = outcomeOf(() => toBinary(desc, message));
    if ("value" in bytes) compare(fromBinary(desc, bytes.value));
  });
  fc.assert(property, { numRuns });
  return written;
}

describe("JSON as protobuf-es writes it", () => {
  test("our protos have no message that is not tested here", () => {
    const names = messagesOf(registry).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining([...namesInProtos()]));
    expect(namesInProtos().length).toBeGreaterThan(30);
  });

  test.each(messagesOf(registry).map((desc) => [desc.typeName, desc] as const))("%s", (_, desc) => {
    expect(compareAtRandom(desc, registry, 60)).toBeGreaterThan(20);
  });

  test.each([StructSchema, TimestampSchema, ValueSchema])("$typeName", (desc) => {
    expect(compareAtRandom(desc, registry, 200)).toBeGreaterThan(20);
  });
});

describe("JSON of kinds that our protos do not have", () => {
  let library: Registry;
  beforeAll(async () => {
    library = createRegistry(...(await compileLibrary()));
  });

  test("is as protobuf-es writes it", () => {
    const messages = messagesOf(library).filter(({ typeName }) => typeName.startsWith("keyhold.test."));
    expect(messages.map(({ name }) => name)).toEqual(expect.arrayContaining(["Item", "Book"]));
    const written = messages.map((desc) => compareAtRandom(desc, library, 100));
    expect(Math.max(...written)).toBeGreaterThan(100);
  });
});

describe("one message", () => {
  const write = compileJsonWriter(VerifyApiKeyResponseSchema, { registry });

  test("has every field that cannot be absent, and no other without a value", () => {
    expect(write({})).toBe('{"is_valid":false,"scopes":[],"metadata":{}}');
  });

  const texts = [
    '"',
    "\\",
    "/",
    "\0",
    "\x1f",
    "\x7f",
    "\n\r\t\b\f",
    "\u2028\u2029",
    "\ud83d\ude00",
    "\ud83d",
    "\ude00\ud83d",
  ];
  test.each([...texts, ...texts.map((text) => text.padStart(100, "é"))])("escapes %j", (text) => {
    const init = { keyId: text, scopes: [text], metadata: { [text]: text } };
    const json = JSON.stringify(text);
    expect(write(init)).toBe(`{"is_valid":false,"key_id":${json},"scopes":[${json}],"metadata":{${json}:${json}}}`);
    expect(write(init)).toBe(reference(VerifyApiKeyResponseSchema, init));
  });

  test.each([
    [1_790_000_000n, 0, "2026-09-21T14:13:20Z"],
    [1_790_000_000n, 120_000_000, "2026-09-21T14:13:20.120Z"],
    [1_790_000_000n, 1000, "2026-09-21T14:13:20.000001Z"],
    [1_790_000_000n, 1, "2026-09-21T14:13:20.000000001Z"],
    [951_782_399n, 0, "2000-02-28T23:59:59Z"],
    [951_782_400n, 0, "2000-02-29T00:00:00Z"],
    [-1n, 999_000_000, "1969-12-31T23:59:59.999Z"],
    [-62_135_596_800n, 0, "0001-01-01T00:00:00Z"],
    [253_402_300_799n, 999_999_999, "9999-12-31T23:59:59.999999999Z"],
  ])("writes %d s and %d ns as a time", (seconds, nanos, time) => {
    expect(JSON.parse(write({ expireTime: { seconds, nanos } }))).toMatchObject({ expire_time: time });
  });

  test.each([
    [253_402_300_800n, 0, "must be from 0001-01-01T00:00:00Z"],
    [-62_135_596_801n, 0, "must be from 0001-01-01T00:00:00Z"],
    [0n, -1, "nanos must not be negative"],
    [0n, 1_000_000_000, "nanos must not be greater"],
  ])("refuses %d s and %d ns", (seconds, nanos, message) => {
    expect(() => write({ expireTime: { seconds, nanos } })).toThrow(message);
  });

  test("refuses a message of another type", () => {
    const message = create(VerifyApiKeyResponseSchema);
    Reflect.set(message, "expireTime", create(DurationSchema));
    expect(() => write(message)).toThrow("cannot use");
  });
});

import { create, type DescMessage, fromBinary, type MessageShape, toBinary, toJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  BatchVerifyApiKeysResponseSchema,
  VerifyApiKeyResponseSchema,
} from "../../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { writeBatchVerifyJson, writeVerifyJson } from "../../../../src/transport/fast-path/codecs.ts";
import { anyInit } from "./arbitrary-init.ts";
import { outcomeOf } from "./messages.ts";

/** Returns the JSON of the library and `JSON.stringify`. */
function reference(desc: DescMessage, init: object): string {
  const options = { useProtoFieldName: true, alwaysEmitImplicit: true };
  return JSON.stringify(toJson(desc, create(desc, { ...init }), options));
}

/** Returns how many random messages were written. */
function compareAtRandom<D extends DescMessage>(desc: D, write: (message: MessageShape<D>) => string): number {
  let written = 0;
  fc.assert(
    fc.property(anyInit(desc), (init) => {
      const message = outcomeOf(() => fromBinary(desc, toBinary(desc, create(desc, Object(init)))));
      const expected = outcomeOf(() => reference(desc, "value" in message ? message.value : {}));
      // The types forbid values that the library rejects.
      if (!("value" in message) || !("value" in expected)) return;
      expect(write(message.value)).toBe(expected.value);
      written++;
    }),
    { numRuns: 500 },
  );
  return written;
}

describe("random responses are encoded like by the library:", () => {
  test("VerifyApiKeyResponse", () => {
    expect(compareAtRandom(VerifyApiKeyResponseSchema, writeVerifyJson)).toBeGreaterThan(100);
  });

  test("BatchVerifyApiKeysResponse", () => {
    expect(compareAtRandom(BatchVerifyApiKeysResponseSchema, writeBatchVerifyJson)).toBeGreaterThan(100);
  });
});

describe("one response", () => {
  const write = writeVerifyJson;

  test("has every required field, and no optional one without a value", () => {
    expect(write({})).toBe('{"is_valid":false,"scopes":[],"metadata":{},"missing_scopes":[],"limits":[]}');
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
    expect(write(init)).toBe(
      `{"is_valid":false,"key_id":${json},"scopes":[${json}],"metadata":{${json}:${json}},"missing_scopes":[],"limits":[]}`,
    );
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
});

import { inspect, isDeepStrictEqual } from "node:util";
import { create, type DescMessage, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  BatchVerifyApiKeysRequestSchema,
  VerifyApiKeyRequestSchema,
} from "../../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { readBatchVerifyJson, readVerifyJson, readVerifyProto } from "../../../../src/transport/fast-path/codecs.ts";
import { valueLimits } from "../../../../src/transport/wire/json/parse.ts";
import { readJsonMessage } from "../../../../src/transport/wire/json/reader.ts";
import { anyJson, damaged } from "./arbitrary-json.ts";
import { outcomeOf } from "./messages.ts";

const LIMITS = valueLimits(2 ** 20);

const encode = (text: string) => new TextEncoder().encode(text);

type Read = (bytes: Uint8Array) => Message;
type Row = readonly [name: string, desc: DescMessage, read: Read];

const READERS: readonly Row[] = [
  ["VerifyApiKeyRequest", VerifyApiKeyRequestSchema, readVerifyJson],
  ["BatchVerifyApiKeysRequest", BatchVerifyApiKeysRequestSchema, readBatchVerifyJson],
];

function compare(desc: DescMessage, read: Read, bytes: Uint8Array): boolean {
  const outcome = outcomeOf(() => read(bytes));
  const expected = outcomeOf(() => readJsonMessage(desc, bytes, LIMITS));
  // Not toStrictEqual, which gives a member named "constructor" a special meaning.
  if (!isDeepStrictEqual(outcome, expected)) expect.fail(`${inspect(outcome)} is not ${inspect(expected)}`);
  return "value" in outcome;
}

test.each(READERS)("random JSON of %s is decoded like on the complete path", (_, desc, read) => {
  let [good, bad] = [0, 0];
  const json = anyJson(desc);
  fc.assert(
    fc.property(json, damaged(json), (text, damagedText) => {
      for (const one of [text, damagedText]) {
        if (compare(desc, read, encode(one))) good++;
        else bad++;
      }
    }),
    { numRuns: 2000 },
  );
  expect(Math.min(good, bad)).toBeGreaterThan(100);
});

const TEXTS = [
  '{"credential":"a"}',
  ' { "credential" : "é \u{1f511} \u{7f}" } ',
  '\ufeff{"credential":"a"}',
  '{"credential":""}',
  '{"credential":"a\\u0062"}',
  '{"credential":"\\ud800"}',
  '{"credential":"a","credential":"b"}',
  '{"credential":"a"}{',
  '{"credential":"a\n"}',
  '{"credential":"a","client_ip":"192.0.2.1","required_scopes":["r","w"],"audience":"books"}',
  '{"credential":"a", "audience" : "b" , "requiredScopes" : [ "r" , "w" ] , "clientIp" : "::1" } ',
  '{"credential":"a","required_scopes":[]}',
  '{"credential":"a","required_scopes":["r",]}',
  '{"credential":"a","required_scopes":["r]"]}',
  '{"credential":"a","required_scopes":["é\\u0041"]}',
  '{"credential":"a","required_scopes":["r",1]}',
  '{"credential":"a","required_scopes":[["r"]]}',
  '{"credential":"a","required_scopes":[null]}',
  '{"credential":"a","required_scopes":"r"}',
  '{"credential":"a","required_scopes":{}}',
  '{"credential":"a","client_ip":["r"]}',
  '{"credential":"a","client_ip":"b","clientIp":"c"}',
  '{"credential":"a","client_ip":"b","client_ip":"c"}',
  '{"credential":"a","audience":"b","credential":"c"}',
  '{"credential":"a","clientip":"b"}',
  '{"credential":"a","client_Ip":"b"}',
  '{"credential":"a","requiredscopes":["b"]}',
  '{"credential":"a","audience":null}',
  '{"credential":"a","audience":"b",}',
  '{"credential":"a","audience":"b"}}',
  '{"credential":"a","audience":"b"',
  '{"audience":"b","credential":"a"}',
  '{"requests":[]}',
  '{"requests":[{"credential":"a"}]}',
  '{ "requests" : [ { "credential" : "a" } , { "credential" : "b" } ] } ',
  '{"requests":[{"credential":"a"},]}',
  '{"requests":[{"credential":"a"}{"credential":"b"}]}',
  '{"requests":[{"credential":"a"}]},',
  '{"requests":[{"credential":"a"},{}]}',
  '{"requests":[{"credential":"a"}],"requests":[]}',
  '{"requests":[{"credential":"a","credential":1}]}',
  '{"requests":[{"credential":"a"}',
  '{"requests":[null]}',
  '{"__proto__":{}}',
  "{},{}",
  "[]",
  "",
];

describe.each(READERS)("%s", (_, desc, read) => {
  test.each(TEXTS)("%j", (text) => {
    compare(desc, read, encode(text));
  });

  test("invalid UTF-8 is refused", () => {
    const bytes = Buffer.from('{"credential":"\xff"}', "latin1");
    expect(compare(desc, read, bytes)).toBe(false);
  });
});

test.each([0, 1, 1000, LIMITS.values - 10, LIMITS.values + 10])("%d required scopes", (count) => {
  const bytes = encode(JSON.stringify({ credential: "a", required_scopes: Array(count).fill("") }));
  compare(VerifyApiKeyRequestSchema, readVerifyJson, bytes);
});

test("random requests of the usual form, whole and damaged, are decoded like on the complete path", () => {
  const value = fc.string({ unit: "grapheme-ascii", maxLength: 12 });
  const member = fc.oneof(
    fc.tuple(fc.constantFrom("client_ip", "clientIp", "audience"), value),
    fc.tuple(fc.constantFrom("required_scopes", "requiredScopes"), fc.array(value, { maxLength: 4 })),
  );
  let [good, bad] = [0, 0];
  fc.assert(
    fc.property(value, fc.array(member, { maxLength: 4 }), fc.nat(), value, (credential, members, at, text) => {
      const written = [["credential", credential] as const, ...members].map((pair) => pair.map(toText).join(":"));
      const whole = `{${written.join(",")}}`;
      const place = at % whole.length;
      for (const one of [whole, whole.slice(0, place), whole.slice(0, place) + text + whole.slice(place)]) {
        if (compare(VerifyApiKeyRequestSchema, readVerifyJson, encode(one))) good++;
        else bad++;
      }
    }),
    { numRuns: 2000 },
  );
  expect(Math.min(good, bad)).toBeGreaterThan(100);
});

const toText = (value: unknown) => JSON.stringify(value);

test.each([
  [LIMITS.values / 2 - 1, true],
  [LIMITS.values / 2, false],
])("%d items without a credential", (count, isRead) => {
  const bytes = encode(`{"requests":[${Array(count).fill("{}").join(",")}]}`);
  expect(compare(BatchVerifyApiKeysRequestSchema, readBatchVerifyJson, bytes)).toBe(isRead);
});

const readAny = (bytes: Uint8Array) => fromBinary(VerifyApiKeyRequestSchema, bytes);

function compareProto(bytes: Uint8Array): void {
  const outcome = outcomeOf(() => readVerifyProto(bytes, readAny));
  const expected = outcomeOf(() => readAny(bytes));
  if (!isDeepStrictEqual(outcome, expected)) expect.fail(`${inspect(outcome)} is not ${inspect(expected)}`);
}

test("random binary messages, whole and damaged, are read as the library reads them", () => {
  const credential = fc.string({ unit: "binary", minLength: 1, maxLength: 140 });
  fc.assert(
    fc.property(credential, fc.nat(), fc.nat(255), (text, at, byte) => {
      const bytes = toBinary(VerifyApiKeyRequestSchema, create(VerifyApiKeyRequestSchema, { credential: text }));
      compareProto(bytes);
      compareProto(bytes.subarray(0, at % (bytes.length + 1)));
      compareProto(bytes.with(at % bytes.length, byte));
    }),
    { numRuns: 5000 },
  );
});

test.each([
  ["no field", []],
  ["an empty credential", [0x0a, 0]],
  ["a byte order mark", [0x0a, 4, 0xef, 0xbb, 0xbf, 0x61]],
  ["text that is not UTF-8", [0x0a, 1, 0xff]],
  ["two credentials", [0x0a, 1, 0x61, 0x0a, 1, 0x62]],
  ["an unknown field", [0x0a, 1, 0x61, 0x10, 1]],
  ["127 bytes", [0x0a, 127, ...Array.from({ length: 127 }, () => 0x61)]],
  ["128 bytes", [0x0a, 0x80, 1, ...Array.from({ length: 128 }, () => 0x61)]],
  ["a length in two bytes", [0x0a, 0x81, 0, 0x61]],
])("%s is read as the library reads it", (_, bytes) => compareProto(Uint8Array.from(bytes)));

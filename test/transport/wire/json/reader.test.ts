import { inspect, isDeepStrictEqual } from "node:util";
import { type DescMessage, type FileRegistry, fromJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { IssuedApiKeysService } from "../../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { SERVICES } from "../../../../src/api/v2alpha1/rpcs.ts";
import { JSON_OPTIONS, readMessage } from "../../../../src/transport/wire/json/reader.ts";
import { anyJson } from "../../fast-path/codecs/arbitrary-json.ts";
import { outcomeOf } from "../../fast-path/codecs/messages.ts";
import { compileLibrary, messageOf } from "../../rest/library.ts";

/** The library is the oracle of the walk, but for field masks: only the walk accepts snake_case, and only the library other texts. */
function compare(desc: DescMessage, text: string): boolean {
  const outcome = outcomeOf(() => readMessage(desc, JSON.parse(text)));
  const masked = text.replaceAll(/:\s*"actor_id"/g, ':"actorId"');
  const expected = outcomeOf(() => fromJson(desc, JSON.parse(masked), JSON_OPTIONS));
  if ("error" in outcome && /^[\w.]*mask: must be field names separated by commas$/.test(`${outcome.error.message}`))
    return false;
  const isEqual = "value" in outcome ? isDeepStrictEqual(outcome, expected) : !("value" in expected);
  if (!isEqual) expect.fail(`${text}: ${inspect(outcome)} is not ${inspect(expected)}`);
  return "value" in outcome;
}

function compareRandom(desc: DescMessage): void {
  let [good, bad] = [0, 0];
  fc.assert(
    fc.property(anyJson(desc), (text) => {
      if (!isJson(text)) return;
      if (compare(desc, text)) good++;
      else bad++;
    }),
    { numRuns: 500 },
  );
  // An empty message has no other valid form.
  expect(desc.fields.length === 0 || Math.min(good, bad) > 10, `${good} good, ${bad} bad`).toBe(true);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const INPUT = IssuedApiKeysService.method.createIssuedApiKey.input;
const INPUTS = SERVICES.flatMap(({ methods }) => methods.map(({ input }) => input));

test.each(INPUTS.map((desc) => [desc.typeName, desc] as const))(
  "random JSON of %s is read as by the library",
  (_, desc) => {
    compareRandom(desc);
  },
);

describe("with every kind of field", () => {
  let registry: FileRegistry;
  let everything: DescMessage;
  beforeAll(async () => {
    registry = await compileLibrary();
    everything = messageOf(registry, "Everything");
  });

  test("random JSON is read as by the library", () => compareRandom(everything));

  test.each([
    '{"title":"a","volume":1}',
    '{"title":"a","volume":null}',
    '{"title":null,"cover":{"title":"b"}}',
    '{"cover":{"title":"b"},"title":"a"}',
    '{"cover":{"title":1}}',
    '{"shelves":{"1":{"title":"a"}}}',
    '{"shelves":{"1":{"title":1}}}',
    '{"shelves":{"x":{"title":"a"}}}',
    '{"shelves":null,"pages":null,"loan":null,"value":null,"nothing":null}',
    '{"loan":"1.5s","value":[null],"nothing":"NULL_VALUE","wrapped":"a","number":1.5,"bytes":"AAE=","big":"1"}',
    '{"loan":"x"}',
    '{"big":1e30}',
    '{"any":{"@type":"type.googleapis.com/keyhold.test.library.Book","title":"a"}}',
    '{"any":{"@type":"type.googleapis.com/unknown"}}',
    '{"times":["2030-01-02T03:04:05.123456789+01:00",null]}',
    '{"time":"2030-01-02t03:04:05z"}',
    '{"time":"0000-12-31T23:59:59Z"}',
    '{"mask":"a,b.cD"}',
    '{"mask":""}',
    '{"mask":["a"]}',
    "{}",
    "[]",
    "null",
  ])("%s", (text) => {
    compare(everything, text);
  });

  test.each([
    ['{"time":"2030-02-30T00:00:00Z"}', "time", "INVALID_FORMAT"],
    ['{"cover":{"due":"2031-02-29T00:00:00Z"}}', "cover.due", "INVALID_FORMAT"],
    ['{"cover":{},"title":"a"}', "title", "DUPLICATE_FIELD"],
    ['{"shelves":{"1":{"title":1}}}', "shelves.1.title", "WRONG_TYPE"],
  ])("%s is refused at %s", (text, field, reason) => {
    const violations = [expect.objectContaining({ field, reason })];
    expect(() => readMessage(everything, JSON.parse(text))).toThrow(expect.objectContaining({ violations }));
  });
});

test("all violations are reported, up to twenty", () => {
  const json = { name: 1, actor_id: "\ud800", nam: 1, scopes: ["a", 1, null], metadata: { a: 1 }, expire_time: "x" };
  const fieldsOf = (value: object) => outcomeOf(() => readMessage(INPUT, JSON.parse(JSON.stringify(value))));
  expect(fieldsOf(json)).toMatchObject({
    error: {
      violations: ["name", "actor_id", "nam", "scopes[1]", "scopes[2]", "metadata.a", "expire_time"].map((field) => ({
        field,
      })),
    },
  });
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`unknown_${i}`, 1]));
  expect(fieldsOf(many)).toMatchObject({ error: { violations: { length: 20 } } });
});

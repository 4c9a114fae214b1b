import { expect, test } from "vitest";
import type {
  IntegerComparison,
  PrefixComparison,
  PresenceComparison,
  StringComparison,
  TimeComparison,
} from "../../src/filter/expression.ts";
import { defineFields } from "../../src/filter/fields.ts";
import { parseFilter } from "../../src/filter/parse.ts";
import { integerRule, prefixRule, timeRule } from "../../src/filter/rules.ts";

/** Another resource than keys, whose tests have the grammar (test/keys/filter). */
type EventComparison =
  | IntegerComparison<"seq">
  | StringComparison<"event_type">
  | PrefixComparison<"event_type">
  | TimeComparison<"time">
  | PresenceComparison<"seq" | "event_type" | "time">;

const FIELDS = defineFields<EventComparison>(
  { seq: integerRule("seq"), event_type: prefixRule("event_type"), time: timeRule("time") },
  { resource: "an event", example: "seq=1", wildcardField: "an event_type" },
);

const parse = (text: string) => parseFilter(text, FIELDS, () => Date.parse("2026-01-31T12:00:00Z"));

test("a filter has the comparisons of its resource", () => {
  expect(parse("eventType:key.* AND time<now() AND seq:*")).toEqual({
    node: "and",
    operands: [
      { node: "prefix", field: "event_type", value: "key." },
      { node: "time", field: "time", operator: "<", value: "2026-01-31T12:00:00.000000Z" },
      { node: "present", field: "seq" },
    ],
  });
});

test.each([
  ["seq>=0", ">=", 0n],
  ["seq=007", "=", 7n],
  ["seq<999999999999999999", "<", 999_999_999_999_999_999n],
])("reads the integer of %s", (text, operator, value) => {
  expect(parse(text)).toEqual({ node: "integer", field: "seq", operator, value });
});

const NO_INTEGER = /invalid value at position 5 \(expected an integer of at most 18 digits, without a sign\)/;

test.each(["seq=-1", "seq=1.0", "seq=1e3", "seq=0x1", 'seq=""', 'seq=" 1"', "seq=1000000000000000000", "seq=٣"])(
  "rejects the integer of %s",
  (text) => {
    expect(() => parse(text)).toThrow(NO_INTEGER);
  },
);

test.each([
  ["evnt_type=a", "unknown field at position 1 (an event has seq, event_type, time; did you mean event_type?)"],
  ["seq=1 AND", "unexpected end at position 10 (expected a comparison such as seq=1)"],
  [
    "event_type:a",
    'invalid value at position 12 (use = to compare the whole text, or end the value with *, as in event_type:"ab*")',
  ],
  [
    "event_type=*a",
    'unexpected wildcard in the value at position 12 (a wildcard is allowed only at the end of an event_type value, or alone after ":"; write "\\*" for a literal *)',
  ],
])("the error of %s names the fields of the resource", (text, description) => {
  expect(() => parse(text)).toThrow(description);
});

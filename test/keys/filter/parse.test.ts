import fc from "fast-check";
import { expect, test } from "vitest";
import { KeyholdError } from "../../../src/domain/errors.ts";
import { type KeyFilter, parseKeyFilter } from "../../../src/keys/filter.ts";
import { anyText } from "../../lib/any-text.ts";
import vectors from "../../vectors/filter.json" with { type: "json" };
import { someFilter, someStyle } from "./arbitrary.ts";
import { NOW } from "./now.ts";
import { printFilter } from "./print.ts";

const now = () => NOW;

test.each(vectors.valid)("reads $filter", ({ filter, normal }) => {
  expect(printFilter(parseKeyFilter(filter, "issued", now))).toBe(normal);
});

test.each(vectors.valid)("reads the normal form of $filter", ({ normal }) => {
  expect(printFilter(parseKeyFilter(normal, "imported", now))).toBe(normal);
});

test.each(vectors.invalid)("refuses $filter", ({ filter, position, message }) => {
  expect(refusal(filter)).toContain(` at position ${position} (`);
  expect(refusal(filter)).toContain(message);
});

test("an error names the kind of key, and quotes nothing of the filter", () => {
  expect(refusal("kh_v1_secret=a")).toMatch(/^unknown field at position 1 \(an issued key has key_id, name, /);
  expect(refusal("key_id=kh_v1_secret")).toBe("invalid value at position 8 (expected a UUID)");
});

test.each([
  ["name=a ".repeat(50), { node: "and" }],
  [`${"(".repeat(20)}name=a${")".repeat(20)}`, { node: "string" }],
  ["(name=a) ".repeat(50), { node: "and" }],
  [`${"NOT (".repeat(20)}name=a${")".repeat(20)}`, { node: "not" }],
  [`name="${"x".repeat(1993)}"`, { node: "string" }],
  [`name="${"😀".repeat(1993)}"`, { node: "string" }],
])("parses filters up to the limits, case %$", (text, filter) => {
  expect(parseKeyFilter(text, "issued", now)).toMatchObject(filter);
});

test.each([
  ["name=a ".repeat(51), 351, "at most 50"],
  [`${"(".repeat(21)}name=a${")".repeat(21)}`, 21, "at most 20 parentheses"],
  ["(".repeat(2000), 21, "at most 20 parentheses"],
  ["-(".repeat(1000), 42, "at most 20 parentheses"],
  ["NOT (".repeat(400), 105, "at most 20 parentheses"],
  ["NOT ".repeat(500), 5, 'unexpected "NOT"'],
  ["-".repeat(2000), 2, "expected a comparison"],
  [`name="${"x".repeat(1994)}"`, 2001, "at most 2000 characters"],
  [`name="${"😀".repeat(1994)}"`, 2001, "at most 2000 characters"],
  [" ".repeat(2001), 2001, "at most 2000 characters"],
  ["(".repeat(10_000_000), 2001, "at most 2000 characters"],
  ['name="😀\ud800"', 8, "surrogate"],
  ['name="\ud83d" AND \0', 7, "surrogate"],
  ["\udc00", 1, "surrogate"],
])("refuses filters beyond the limits or of invalid text, case %$", (text, position, message) => {
  expect(refusal(text)).toContain(` at position ${position} (`);
  expect(refusal(text)).toContain(message);
});

test("a printed filter parses back in every style", () => {
  fc.assert(
    fc.property(someFilter, someStyle, fc.constantFrom("issued", "imported"), (filter, style, kind) => {
      expect(parseKeyFilter(printFilter(filter), kind, now)).toEqual(filter);
      expect(parseKeyFilter(printFilter(filter, style), kind, now)).toEqual(filter);
    }),
    { numRuns: 500 },
  );
});

const TOKENS = [
  ..."()\"'\\*.,:=<>!- \t\n\0\u00a0a1é😀\ud800",
  ...[
    "AND",
    "OR",
    "NOT",
    " AND ",
    " OR ",
    "NOT ",
    "!=",
    "<=",
    ">=",
    ":*",
    "name",
    "actorId",
    "metadata.",
    "metadata.a=",
  ],
  ...[
    "key_id=",
    "scopes:",
    "status=KEY_STATUS_ACTIVE",
    "name=a",
    'name="a*"',
    "create_time>2026-01-31T12:00:00Z",
    "expire_time<",
    "now()",
    '+"30d"',
    "- 1h",
    "\\*",
  ],
];
const soup = fc.array(fc.constantFrom(...TOKENS), { maxLength: 60 }).map((tokens) => tokens.join(""));

/** A valid text with one insertion or deletion. */
const nearlyValid = fc
  .tuple(someFilter, someStyle, fc.nat(), fc.nat(3), fc.constantFrom("", ...TOKENS))
  .map(([filter, style, at, length, token]) => {
    const text = printFilter(filter, style);
    const offset = at % (text.length + 1);
    return text.slice(0, offset) + token + text.slice(offset + length);
  });

test("any text is a filter that parses back, or an invalid argument", () => {
  const counts = { filters: 0, refusals: 0 };
  fc.assert(
    fc.property(fc.oneof(soup, nearlyValid, anyText), (text) => {
      const result = attempt(text);
      if (result instanceof KeyholdError) {
        counts.refusals++;
        expect(result.code).toBe("INVALID_ARGUMENT");
        expect(result.violations).toEqual([
          {
            field: "filter",
            description: expect.stringMatching(/^.+ at position \d+ \(.+\)$/su),
            reason: "INVALID_FORMAT",
          },
        ]);
      } else {
        counts.filters++;
        expect(parseKeyFilter(printFilter(result), "issued", now)).toEqual(result);
      }
    }),
    { numRuns: 3000 },
  );
  expect(Math.min(counts.filters, counts.refusals)).toBeGreaterThan(100);
});

const PREFIXES = [
  "-(",
  "NOT (",
  '"\\',
  "a.",
  "name=a OR ",
  'name="',
  'name="*',
  "metadata.a",
  "create_time>9",
  "((name=a) ",
];

test.each([...TOKENS, ...PREFIXES].map((piece) => [piece]))("2000 characters of %j are parsed quickly", (piece) => {
  const text = piece.repeat(2000).slice(0, 2000).toWellFormed();
  const times = [1, 2, 3].map(() => {
    const start = performance.now();
    attempt(text);
    return performance.now() - start;
  });
  expect(Math.min(...times)).toBeLessThan(50);
});

function attempt(text: string): KeyFilter | KeyholdError {
  try {
    return parseKeyFilter(text, "issued", now);
  } catch (error) {
    if (error instanceof KeyholdError) return error;
    throw error;
  }
}

function refusal(text: string): string {
  const result = attempt(text);
  if (!(result instanceof KeyholdError)) throw new Error("was not refused", { cause: result });
  return result.violations[0]?.description ?? "";
}

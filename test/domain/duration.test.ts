import fc from "fast-check";
import { expect, test } from "vitest";
import { GRACE_PERIOD_BOUNDS, parseDuration, TTL_BOUNDS } from "../../src/domain/duration.ts";
import { KeyholdError } from "../../src/domain/errors.ts";
import { anyText } from "../lib/any-text.ts";
import vectors from "../vectors/duration.json" with { type: "json" };

const ANY = { min: 0, max: Number.MAX_SAFE_INTEGER };

test.each(vectors.valid)("$text is $milliseconds ms", ({ text, milliseconds }) => {
  expect(parseDuration(text, "ttl")).toBe(milliseconds);
});

const REASONS = [
  [/ from .* to /, "OUT_OF_RANGE"],
  [/ characters$/, "STRING_TOO_LONG"],
] as const;

test.each(vectors.invalid)("refuses $text", ({ text, message }) => {
  const error = refusal(text);
  expect(error.code).toBe("INVALID_ARGUMENT");
  const [, reason = "INVALID_FORMAT"] = REASONS.find(([description]) => description.test(error.message)) ?? [];
  expect(error.violations).toEqual([{ field: "body.ttl", description: expect.stringContaining(message), reason }]);
});

test("thousandths of every unit are exact", () => {
  const units = fc.constantFrom(
    ...Object.entries({ s: 1, m: 60, h: 3600, d: 86400, w: 604800, mo: 2592000, y: 31536000 }),
  );
  fc.assert(
    fc.property(fc.nat(10_000_000), units, (thousandths, [unit, seconds]) => {
      const decimals = String(thousandths % 1000).padStart(3, "0");
      const text = `${Math.floor(thousandths / 1000)}.${decimals}${unit}`;
      expect(parseDuration(text, "ttl", ANY)).toBe(thousandths * seconds);
    }),
  );
});

test("any text is a duration within the bounds or an invalid argument", () => {
  const alphabet = fc.constantFrom(..."0123456789.smhdwyo -+e");
  const texts = fc.oneof(fc.string({ unit: alphabet, maxLength: 80 }), anyText);
  fc.assert(
    fc.property(texts, (text) => {
      const result = attempt(text);
      if (result instanceof Error) expect(result).toMatchObject({ name: "KeyholdError", code: "INVALID_ARGUMENT" });
      else expect(Number.isInteger(result) && result >= TTL_BOUNDS.min && result <= TTL_BOUNDS.max).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

test("a huge text is rejected without parsing", () => {
  expect(refusal("9".repeat(10_000_000)).violations[0]?.description).toBe("must have at most 64 characters");
});

test("bounds are those of the caller, inclusive", () => {
  expect(parseDuration("30d", "grace_period", GRACE_PERIOD_BOUNDS)).toBe(GRACE_PERIOD_BOUNDS.max);
  expect(parseDuration("1s", "grace_period", GRACE_PERIOD_BOUNDS)).toBe(GRACE_PERIOD_BOUNDS.min);
  expect(() => parseDuration("30d0.001s", "grace_period", GRACE_PERIOD_BOUNDS)).toThrow(
    "grace_period: must be a duration from 1s to 30d",
  );
});

function attempt(text: string): number | Error {
  try {
    return parseDuration(text, "body.ttl");
  } catch (error) {
    return error instanceof Error ? error : new Error("not an error", { cause: error });
  }
}

function refusal(text: string): KeyholdError {
  const result = attempt(text);
  if (result instanceof KeyholdError) return result;
  throw new Error("was not refused", { cause: result });
}

test.each([
  ["90D", "units must be in lower case"],
  ["P90D", "an ISO 8601 duration such as P90D is not accepted: write 90d"],
  ["pt1h", "an ISO 8601 duration such as P90D is not accepted: write 90d"],
  ["90", "m (minutes)"],
  ["1 month", "mo (30 days)"],
])("the error of %s names the units, and the mistake", (text, hint) => {
  expect(() => parseDuration(text, "ttl")).toThrow("ttl: must be a duration such as");
  expect(() => parseDuration(text, "ttl")).toThrow(hint);
});

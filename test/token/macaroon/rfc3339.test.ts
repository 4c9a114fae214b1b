import fc from "fast-check";
import { expect, test } from "vitest";
import { formatRfc3339, parseRfc3339 } from "../../../src/token/macaroon/rfc3339.ts";
import { times } from "./samples.ts";

// The samples of the caveats cover valid and invalid times.

test("milliseconds are printed only if they are not zero", () => {
  expect(formatRfc3339(0)).toBe("1970-01-01T00:00:00Z");
  expect(formatRfc3339(1)).toBe("1970-01-01T00:00:00.001Z");
  expect(formatRfc3339(-1)).toBe("1969-12-31T23:59:59.999Z");
});

test("rejects a year without four digits", () => {
  expect(() => formatRfc3339(Date.UTC(10_000))).toThrow(RangeError);
  expect(() => formatRfc3339(Date.UTC(-1))).toThrow(RangeError);
  expect(() => formatRfc3339(Number.NaN)).toThrow(RangeError);
});

test("round-trips in every offset", () => {
  fc.assert(
    fc.property(times, fc.integer({ min: -1439, max: 1439 }), (time, offset) => {
      expect(parseRfc3339(formatRfc3339(time))).toBe(time);
      const sign = offset < 0 ? "-" : "+";
      const size = Math.abs(offset);
      const zone = `${sign}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
      const local = formatRfc3339(time).replace("Z", zone);
      expect(parseRfc3339(local)).toBe(time - offset * 60_000);
    }),
  );
});

function pad(number: number): string {
  return String(number).padStart(2, "0");
}

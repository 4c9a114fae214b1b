import fc from "fast-check";
import { expect, test } from "vitest";
import { type Allowance, type Bound, fullestWindow } from "./window-bound.ts";

const allowance = fc.record({ from: fc.nat(100), length: fc.nat(20), tokens: fc.nat(5) });
const bound = fc.record({ fixed: fc.nat(5), rate: fc.constantFrom(0, 0.1, 1), allowances: fc.array(allowance) });

test("finds the window that exceeds the bound most, like a comparison of all windows", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(120), { minLength: 1, maxLength: 30 }), bound, (times, { allowances, ...rest }) => {
      const admitted = times.toSorted((a, b) => a - b);
      const all = { ...rest, allowances: allowances.map(({ length, ...one }) => ({ ...one, to: one.from + length })) };
      expect(fullestWindow(admitted, all).excess).toBeCloseTo(mostOf(admitted, all), 9);
    }),
  );
});

function mostOf(admitted: readonly number[], { fixed, rate, allowances }: Bound): number {
  const isWithin = (from: number, to: number) => (one: Allowance) => one.from <= to && from <= one.to;
  return Math.max(
    ...admitted.flatMap((from, i) =>
      admitted.slice(i).map((to, more) => {
        const extra = allowances.filter(isWithin(from, to)).reduce((sum, { tokens }) => sum + tokens, 0);
        return more + 1 - fixed - rate * (to - from) - extra;
      }),
    ),
  );
}

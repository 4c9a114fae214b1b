import { expect, onTestFinished, test, vi } from "vitest";
import { UnknownKids } from "../../src/signing/unknown-kids.ts";

const kid = (number: number) => String(number).padStart(43, "k");

test("ten kids are looked up per second", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const kids = new UnknownKids();
  const lookUps = () => Array.from({ length: 12 }, (_, number) => kids.mayLookUp(kid(number))).filter(Boolean).length;
  expect(kids.mayLookUp(kid(0))).toBe(true);
  vi.advanceTimersByTime(999);
  expect(lookUps()).toBe(9);
  vi.advanceTimersByTime(1);
  expect(lookUps()).toBe(10);
  expect(lookUps()).toBe(0);
});

test("the last 10,000 unknown kids are cached", () => {
  const kids = new UnknownKids();
  for (let number = 0; number < 10_001; number++) kids.add(kid(number));
  expect([0, 1, 10_000].map((number) => kids.mayLookUp(kid(number)))).toEqual([true, false, false]);
});

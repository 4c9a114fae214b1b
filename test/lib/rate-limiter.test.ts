import { expect, test } from "vitest";
import { createRateLimiter } from "../../src/lib/rate-limiter.ts";

function limiter(options: { rate: number; burst: number; maxBuckets?: number; shares?: () => number }) {
  let now = 5_000;
  const { take, wait } = createRateLimiter({ maxBuckets: 100, ...options, monotonic: () => now });
  const takeMany = (bucket: string, count: number) =>
    Array.from({ length: count }, () => take(bucket)).filter(Boolean).length;
  return {
    take,
    wait,
    takeMany,
    pass: (milliseconds: number) => {
      now += milliseconds;
    },
  };
}

test("allows the burst at once, then the rate", () => {
  const { take, takeMany, pass } = limiter({ rate: 10, burst: 5 });
  expect(takeMany("a", 20)).toBe(5);
  pass(99);
  expect(take("a")).toBe(false);
  pass(1);
  expect(takeMany("a", 2)).toBe(1);
  pass(350);
  expect(takeMany("a", 20)).toBe(3);
  pass(3_600_000);
  expect(takeMany("a", 20)).toBe(5);
});

test("rejected attempts do not delay the next token", () => {
  const { take, takeMany, pass } = limiter({ rate: 1, burst: 1 });
  expect(take("a")).toBe(true);
  for (let tenth = 0; tenth < 9; tenth++) {
    pass(100);
    expect(takeMany("a", 10)).toBe(0);
  }
  pass(100);
  expect(take("a")).toBe(true);
});

test("buckets are independent", () => {
  const { take } = limiter({ rate: 1, burst: 1 });
  expect(["a", "b", "a", "b"].map(take)).toEqual([true, true, false, false]);
});

test("keeps frequently used buckets when the limit is exceeded", () => {
  const { take, takeMany } = limiter({ rate: 0.001, burst: 2, maxBuckets: 10 });
  expect(takeMany("busy", 3)).toBe(2);
  for (let index = 0; index < 1_000; index++) {
    expect(take(`other ${index}`)).toBe(true);
    expect(take("busy")).toBe(false);
  }
});

test("a share of the rate and burst is admitted, at least one token per burst", () => {
  let shares = 4;
  const { takeMany, pass } = limiter({ rate: 10, burst: 20, shares: () => shares });
  expect(takeMany("a", 100)).toBe(5);
  pass(1_000);
  expect(takeMany("a", 100)).toBe(2);
  shares = 1_000;
  expect(takeMany("b", 100)).toBe(1);
  pass(2_000);
  expect(takeMany("b", 100)).toBe(1);
});

test("the time until there are tokens is known, and takes none", () => {
  const { take, takeMany, wait, pass } = limiter({ rate: 10, burst: 8 });
  expect([wait("a"), wait("a", 100)]).toEqual([0, 0]);
  takeMany("a", 4);
  // Half full.
  expect(wait("a", 100)).toBe(0);
  take("a");
  expect([wait("a"), wait("a", 3), wait("a", 4), wait("a", 100)]).toEqual([0, 0, 100, 100]);
  takeMany("a", 3);
  expect([wait("a"), wait("a", 2)]).toEqual([100, 200]);
  pass(100);
  expect(wait("a")).toBe(0);
});

import { describe, expect, test } from "vitest";
import { parseRetryAfter } from "../../../src/webhooks/sending/retry-after.ts";
import { afterAttempt } from "../../../src/webhooks/sending/schedule.ts";

const HOUR = 3_600_000;

const outcome = (status: number | null, retryAfter: number | null = null) => ({
  status,
  error: status === 204 ? null : "failed",
  retryAfter,
  duration: 1,
});

const delayOf = (attempts: number, status: number | null, retryAfter: number | null, random = 0) => {
  const step = afterAttempt(attempts, outcome(status, retryAfter), () => random);
  return step.next === "retry" ? step.delay : step.next;
};

test("ten attempts are made, after 0, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h", () => {
  const delays = Array.from({ length: 10 }, (_, made) => delayOf(made + 1, 500, null));
  const hours = [2, 5, 10, 14, 20, 24].map((count) => count * HOUR);
  expect(delays).toEqual([5_000, 300_000, 1_800_000, ...hours, "failed"]);
  expect(delayOf(11, 500, null)).toBe("failed");
});

test("delays have up to 10 % of jitter, and are never shorter", () => {
  expect([0, 0.5, 1].map((random) => delayOf(1, null, null, random))).toEqual([5_000, 5_250, 5_500]);
});

test.each([null, 301, 400, 404, 429, 500])("%s is retried", (status) => {
  expect(delayOf(1, status, null)).toBe(5_000);
});

test("only 410 is gone, and only a success succeeds", () => {
  expect([1, 10].map((attempts) => delayOf(attempts, 410, 60_000))).toEqual(["gone", "gone"]);
  expect([1, 10].map((attempts) => delayOf(attempts, 204, null))).toEqual(["succeeded", "succeeded"]);
});

test("Retry-After extends a delay, and does not shorten it", () => {
  expect(delayOf(1, 503, 60_000, 0.5)).toBe(63_000);
  expect(delayOf(2, 503, 60_000)).toBe(300_000);
  expect(delayOf(10, 503, 60_000)).toBe("failed");
});

describe("Retry-After", () => {
  const NOW = Date.parse("2026-11-27T10:00:00.500Z");

  test.each([
    [undefined, null],
    ["", null],
    ["soon", null],
    ["12 s", null],
    ["0", 0],
    ["120", 120_000],
    ["00120", 120_000],
    ["86401", 24 * HOUR],
    ["9".repeat(400), 24 * HOUR],
    ["Fri, 27 Nov 2026 10:01:00 GMT", 59_500],
    ["Friday, 27-Nov-26 10:01:00 GMT", 59_500],
    ["Fri, 27 Nov 2026 09:00:00 GMT", 0],
    ["Sun, 27 Nov 2033 10:00:00 GMT", 24 * HOUR],
    ["Fri, 99 Nov 2026 10:01:00 GMT", null],
  ])("%s", (value, delay) => expect(parseRetryAfter(value, NOW)).toBe(delay));
});

import { expect, test } from "vitest";
import { BodyBudget, BodyBuffer } from "../../../src/transport/wire/request-body.ts";

/** Cost of a chunk of one byte. */
const ONE = 257;

function bodies(count: number, max: number) {
  const budget = new BodyBudget(max);
  const evicted: number[] = [];
  const buffers = Array.from(
    { length: count },
    (_, i) => new BodyBuffer(1000, budget, { reject: () => evicted.push(i) }),
  );
  return { budget, evicted, buffers };
}

test("a complete body is returned unchanged and no longer counts", () => {
  const { budget, buffers } = bodies(1, 10_000);
  for (const text of ["ab", "", "c"]) expect(buffers[0]?.add(Buffer.from(text))).toBe(true);
  expect(budget.used).toBe(3 + 3 * 256);
  expect(Buffer.from(buffers[0]?.complete() ?? []).toString()).toBe("abc");
  expect(budget.used).toBe(0);
});

test("a body is dropped at the first byte above its limit", () => {
  const { budget, buffers } = bodies(1, 10_000);
  expect(buffers[0]?.add(Buffer.alloc(1000))).toBe(true);
  expect(buffers[0]?.add(Buffer.alloc(1))).toBe(false);
  expect(budget.used).toBe(0);
});

test("when the budget is exhausted, the oldest incomplete bodies are evicted", () => {
  const { budget, evicted, buffers } = bodies(4, 3 * ONE);
  for (const buffer of buffers.slice(0, 3)) buffer.add(Buffer.alloc(1));
  buffers[0]?.complete();
  buffers[3]?.add(Buffer.alloc(1));
  expect(evicted).toEqual([]);
  buffers[3]?.add(Buffer.alloc(1));
  expect(evicted).toEqual([1]);
  expect(budget.used).toBe(3 * ONE);
});

test("a body that alone exceeds the budget is evicted itself", () => {
  const { budget, evicted, buffers } = bodies(1, ONE);
  buffers[0]?.add(Buffer.alloc(1));
  buffers[0]?.add(Buffer.alloc(1));
  expect(evicted).toEqual([0]);
  expect(budget.used).toBe(0);
});

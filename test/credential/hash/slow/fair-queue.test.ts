import { expect, test } from "vitest";
import { FairQueue } from "../../../../src/credential/hash/slow/fair-queue.ts";

function drain<T>(queue: FairQueue<T>): T[] {
  return Array.from({ length: queue.size + 1 }, () => queue.shift()).filter((item) => item !== undefined);
}

test("groups take turns, and each is first in, first out", () => {
  const queue = new FairQueue<string>(9);
  for (const item of ["a1", "a2", "a3", "b1", "c1", "c2"]) expect(queue.add(item.slice(0, 1), item)).toBeUndefined();
  expect([queue.shift(), queue.shift()]).toEqual(["a1", "b1"]);
  queue.add("b", "b2");
  expect(drain(queue)).toEqual(["c1", "a2", "b2", "c2", "a3"]);
  expect(queue.size).toBe(0);
});

test("in a full queue the newest item of the largest group makes room", () => {
  const queue = new FairQueue<string>(4);
  for (const item of ["a1", "a2", "a3", "b1"]) queue.add(item.slice(0, 1), item);
  expect(queue.add("a", "a4")).toBe("a4");
  expect(queue.add("c", "c1")).toBe("a3");
  // Nothing is gained any more.
  expect(queue.add("b", "b2")).toBe("b2");
  expect(queue.add("d", "d1")).toBe("a2");
  expect(queue.add("e", "e1")).toBe("e1");
  expect(queue.size).toBe(4);
  expect(drain(queue)).toEqual(["a1", "b1", "c1", "d1"]);
});

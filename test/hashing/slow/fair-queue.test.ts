import { expect, test } from "vitest";
import { FairQueue } from "../../../src/hashing/slow/fair-queue.ts";

/** A queue of names, whose first letters are their groups. */
function newQueue(maxSize: number) {
  const queue = new FairQueue<{ name: string; since: number }>(maxSize);
  let now = 0;
  const add = (name: string, since = ++now) => queue.add(name.slice(0, 1), { name, since })?.name;
  const shift = () => queue.shift()?.name;
  const drain = () => Array.from({ length: queue.size + 1 }, shift).filter((name) => name !== undefined);
  return { queue, add, shift, drain };
}

test("groups take turns, and of each the oldest comes first", () => {
  const { queue, add, shift, drain } = newQueue(9);
  for (const name of ["a1", "a2", "a3", "b1", "c1", "c2"]) expect(add(name)).toBeUndefined();
  expect([shift(), shift()]).toEqual(["a1", "b1"]);
  add("b2");
  add("a0", 0);
  expect(drain()).toEqual(["c1", "a0", "b2", "c2", "a2", "a3"]);
  expect(queue.size).toBe(0);
});

test("in a full queue the youngest item of the largest group makes room", () => {
  const { queue, add, drain } = newQueue(4);
  for (const name of ["a1", "a2", "a3", "b1"]) add(name);
  expect(add("a4")).toBe("a4");
  expect(add("a0", 0)).toBe("a3");
  expect(add("c1")).toBe("a2");
  // Nothing is gained any more.
  expect(add("b2")).toBe("b2");
  expect(add("d1")).toBe("a1");
  expect(add("e1")).toBe("e1");
  expect(add("b0", 0)).toBe("b1");
  expect(queue.size).toBe(4);
  expect(drain()).toEqual(["a0", "b0", "c1", "d1"]);
});

import { expect, test } from "vitest";
import { memoize } from "../../src/lib/memoize.ts";

test("what is made of a frozen object is made once, of any other each time", () => {
  let calls = 0;
  const make = memoize(({ name }: { name: string }) => `${name} ${++calls}`);
  const [frozen, another, loose] = [Object.freeze({ name: "a" }), Object.freeze({ name: "a" }), { name: "b" }];
  expect([make(frozen), make(frozen), make(another), make(frozen)]).toEqual(["a 1", "a 1", "a 2", "a 1"]);
  expect([make(loose), make(loose)]).toEqual(["b 3", "b 4"]);
});

test("nothing is remembered of what failed", () => {
  let calls = 0;
  const make = memoize(() => {
    if (++calls === 1) throw new Error("once");
    return undefined;
  });
  const key = Object.freeze({});
  expect(() => make(key)).toThrow("once");
  expect([make(key), make(key), calls]).toEqual([undefined, undefined, 2]);
});

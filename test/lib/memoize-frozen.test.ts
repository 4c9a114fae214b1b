import { expect, test } from "vitest";
import { memoizeFrozen } from "../../src/lib/memoize-frozen.ts";

test("memoizes frozen arguments by identity, and calls the function each time for others", () => {
  let calls = 0;
  const make = memoizeFrozen(({ name }: { name: string }) => `${name} ${++calls}`);
  const [frozen, equal, open] = [Object.freeze({ name: "a" }), Object.freeze({ name: "a" }), { name: "b" }];
  expect([frozen, equal, open, frozen, equal, open].map(make)).toEqual(["a 1", "a 2", "b 3", "a 1", "a 2", "b 4"]);
});

test("does not memoize an error", () => {
  let calls = 0;
  const make = memoizeFrozen(() => {
    if (++calls === 1) throw new Error("the first call");
    return calls;
  });
  const source = Object.freeze({});
  expect(() => make(source)).toThrow("the first call");
  expect([make(source), make(source)]).toEqual([2, 2]);
});

test("freezes results of frozen arguments only, so that functions of them are memoized too", () => {
  const make = memoizeFrozen(({ name }: { name: string }) => ({ name }));
  expect(Object.isFrozen(make(Object.freeze({ name: "a" })))).toBe(true);
  expect(Object.isFrozen(make({ name: "a" }))).toBe(false);
});

test("memoizes bytes", () => {
  const make = memoizeFrozen(() => new Uint8Array(1));
  const source = Object.freeze({});
  expect(make(source)).toBe(make(source));
});

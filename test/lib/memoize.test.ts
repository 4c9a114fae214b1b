import { expect, test } from "vitest";
import { isShared, memoize, share, sharedLike } from "../../src/lib/memoize.ts";

test("memoizes shared arguments by identity, and calls the function each time for others, frozen or not", () => {
  let calls = 0;
  const make = memoize(({ name }: { name: string }) => `${name} ${++calls}`);
  const [shared, another, frozen] = [share({ name: "a" }), share({ name: "a" }), Object.freeze({ name: "b" })];
  expect([make(shared), make(shared), make(another), make(shared)]).toEqual(["a 1", "a 1", "a 2", "a 1"]);
  expect([make(frozen), make(frozen), make({ name: "c" })]).toEqual(["b 3", "b 4", "c 5"]);
});

test("does not memoize an error", () => {
  let calls = 0;
  const make = memoize(() => {
    if (++calls === 1) throw new Error("once");
    return undefined;
  });
  const key = share({});
  expect(() => make(key)).toThrow("once");
  expect([make(key), make(key), calls]).toEqual([undefined, undefined, 2]);
});

test("a shared value is frozen, and equal to what it was; a copy of it is not shared", () => {
  const shared = share({ name: "a" });
  expect(Object.isFrozen(shared)).toBe(true);
  expect([shared, JSON.stringify(shared), Object.keys(shared)]).toEqual([{ name: "a" }, '{"name":"a"}', ["name"]]);
  expect([isShared(shared), isShared({ ...shared, name: "b" }), isShared(Object.freeze({}))]).toEqual([
    true,
    false,
    false,
  ]);
});

test("a value derived from a shared one is shared", () => {
  expect(isShared(sharedLike(share({}), {}))).toBe(true);
  expect(isShared(sharedLike({}, {}))).toBe(false);
});

import { expect, test } from "vitest";
import { memoizable, memoize, memoizeByIdentity } from "../../src/lib/memoize.ts";

test("memoizes by identity for memoizable arguments, and calls the function each time for others", () => {
  let calls = 0;
  const make = memoize(({ name }: { name: string }) => `${name} ${++calls}`);
  const [first, equal, open] = [memoizable({ name: "a" }), memoizable({ name: "a" }), { name: "b" }];
  expect([first, equal, open, first, equal, open].map(make)).toEqual(["a 1", "a 2", "b 3", "a 1", "a 2", "b 4"]);
});

test("does not memoize an error", () => {
  let calls = 0;
  const make = memoize(() => {
    if (++calls === 1) throw new Error("the first call");
    return calls;
  });
  const source = memoizable({});
  expect(() => make(source)).toThrow("the first call");
  expect([make(source), make(source)]).toEqual([2, 2]);
});

test("freezes results of memoizable arguments only, so that functions of them are memoized too", () => {
  const make = memoize(({ name }: { name: string }) => ({ name }));
  expect(Object.isFrozen(make(memoizable({ name: "a" })))).toBe(true);
  expect(Object.isFrozen(make({ name: "a" }))).toBe(false);
});

test("memoizes bytes", () => {
  const make = memoize(() => new Uint8Array(1));
  const source = memoizable({});
  expect(make(source)).toBe(make(source));
});

test("keeps results apart by function, and out of the properties of the object", () => {
  const source = memoizable({ name: "a" });
  const [upper, length] = [memoize(({ name }: { name: string }) => name.toUpperCase()), memoize(() => 1)];
  expect([upper(source), length(source), upper(source)]).toEqual(["A", 1, "A"]);
  expect([source, { ...source }, JSON.stringify(source)]).toEqual([{ name: "a" }, { name: "a" }, '{"name":"a"}']);
  expect(upper({ ...source, name: "b" })).toBe("B");
});

test("memoizes by identity alone, for any object", () => {
  let calls = 0;
  const make = memoizeByIdentity(({ name }: { name: string }) => `${name} ${++calls}`);
  const [first, equal] = [{ name: "a" }, { name: "a" }];
  expect([first, equal, first, equal].map(make)).toEqual(["a 1", "a 2", "a 1", "a 2"]);
});

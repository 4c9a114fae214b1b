import { expect, test } from "vitest";
import { CloseSignal } from "../../src/lib/close-signal.ts";

const over = new Error("over");

test("work that settles before the close keeps its result", async () => {
  const ending = new CloseSignal();
  expect(await ending.race(Promise.resolve(1))).toBe(1);
  await expect(ending.race(Promise.reject(new Error("mine")))).rejects.toThrow("mine");
});

test("work in flight at the close rejects with the reason, and so does later work", async () => {
  const ending = new CloseSignal();
  const racing = ending.race(new Promise(() => undefined));
  expect(ending.end(over)).toBe(true);
  await expect(racing).rejects.toBe(over);
  await expect(ending.race(Promise.resolve(1))).rejects.toBe(over);
});

test("every listener is called once unless removed", () => {
  const ending = new CloseSignal();
  const told: string[] = [];
  ending.onEnd(() => told.push("a"));
  const off = ending.onEnd(() => told.push("b"));
  off();
  expect([ending.end(over), ending.end(new Error("again")), ending.reason]).toEqual([true, false, over]);
  ending.onEnd(() => told.push("late"));
  expect(told).toEqual(["a", "late"]);
});

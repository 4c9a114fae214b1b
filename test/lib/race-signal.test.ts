import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { raceSignal } from "../../src/lib/race-signal.ts";

const over = new Error("over");

test("work that settles before the signal aborts keeps its result, and leaves no listener", async () => {
  const { signal } = new AbortController();
  expect(await raceSignal(signal, Promise.resolve(1))).toBe(1);
  await expect(raceSignal(signal, Promise.reject(new Error("mine")))).rejects.toThrow("mine");
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("work in flight when the signal aborts rejects with the reason, and so does later work", async () => {
  const ended = new AbortController();
  const racing = raceSignal(ended.signal, new Promise(() => undefined));
  ended.abort(over);
  await expect(racing).rejects.toBe(over);
  await expect(raceSignal(ended.signal, Promise.resolve(1))).rejects.toBe(over);
});

import { expect, test } from "vitest";
import { ClockCache } from "../../src/lib/clock-cache.ts";
import { seededBy } from "../support/seeded.ts";

const random = seededBy("SECOND_CHANCE_SEED");

test("behaves like a Map except for evicted entries", () => {
  let [found, lost] = [0, 0];
  for (let run = 0; run < 100; run++) {
    const seeded = random.fork();
    const max = 1 + seeded.below(30);
    const [map, model] = [new ClockCache<number>(max), new Map<string, number>()];
    for (let round = 0; round < 500; round++) {
      const key = `key ${seeded.below(50)}`;
      const choice = seeded.below(100);
      if (choice < 50) {
        map.set(key, round);
        model.set(key, round);
        expect(map.get(key)).toBe(round);
      } else if (choice < 80) {
        const value = map.get(key);
        if (value !== undefined) expect(value).toBe(model.get(key));
      } else if (choice < 99) {
        map.delete(key);
        model.delete(key);
        expect(map.get(key)).toBeUndefined();
      } else {
        map.clear();
        model.clear();
      }
      expect(map.size).toBeLessThanOrEqual(Math.min(max, model.size));
    }
    const left = [...model.keys()].filter((key) => map.get(key) !== undefined);
    expect(left.length).toBe(map.size);
    found += left.length;
    lost += model.size - left.length;
  }
  expect(Math.min(found, lost)).toBeGreaterThan(100);
});

test("evicts unused entries first", () => {
  const map = new ClockCache<number>(100);
  map.set("used", 1);
  for (let i = 0; i < 1000; i++) {
    map.set(`other ${i}`, i);
    expect(map.get("used")).toBe(1);
  }
  expect(map.get("other 0")).toBeUndefined();
});

test("evicts even if every entry was used", () => {
  const map = new ClockCache<number>(50);
  const keys = Array.from({ length: 50 }, (_, i) => `key ${i}`);
  for (const key of keys) map.set(key, 0);
  for (const key of keys) map.get(key);
  map.set("new", 1);
  expect([map.get("new"), map.size]).toEqual([1, 50]);
});

test("reuses a free slot before evicting", () => {
  const map = new ClockCache<number>(50);
  for (let i = 0; i < 50; i++) map.set(`key ${i}`, i);
  for (let i = 40; i < 50; i++) map.delete(`key ${i}`);
  for (let i = 50; i < 60; i++) map.set(`key ${i}`, i);
  for (let i = 0; i < 60; i++) expect(map.get(`key ${i}`)).toBe(i >= 40 && i < 50 ? undefined : i);
  expect(map.size).toBe(50);
});

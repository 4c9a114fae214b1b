import { setImmediate as nextTick } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { createTickBudget } from "../../../src/transport/wire/tick-budget.ts";

test("the calls started per tick are bounded, and the others start in the next ticks in the order of arrival", async () => {
  const begun: number[] = [];
  const enter = createTickBudget<number>(
    (work) => begun.push(work),
    10,
    () => 0,
  );
  for (let work = 0; work < 25; work++) enter(work);
  expect(begun).toHaveLength(10);
  await nextTick();
  expect(begun).toHaveLength(20);
  enter(25);
  expect(begun).toHaveLength(20);
  await nextTick();
  expect(begun).toEqual(Array.from({ length: 26 }, (_, work) => work));
  await nextTick();
  enter(26);
  expect(begun).toHaveLength(27);
});

test("a tick that has taken 10 ms starts no further call, and each tick starts one", async () => {
  let time = 0;
  const begun: number[] = [];
  const durations = [4, 4, 4, 1, 30, 1];
  const enter = createTickBudget<number>(
    (work) => {
      begun.push(work);
      time += durations[work] ?? 0;
    },
    10,
    () => time,
  );
  for (const work of durations.keys()) enter(work);
  expect(begun).toEqual([0, 1, 2]);
  await nextTick();
  expect(begun).toEqual([0, 1, 2, 3, 4]);
  await nextTick();
  expect(begun).toEqual([0, 1, 2, 3, 4, 5]);
});

test("work that schedules work does not starve timers", async () => {
  let [begun, over] = [0, false];
  const enter: (work: null) => void = createTickBudget(() => {
    begun++;
    // Like a client that sends its next request as soon as it has a response.
    if (!over) enter(null);
  }, 10);
  const timer = new Promise((resolve) => setTimeout(resolve, 1));
  enter(null);
  await timer;
  // On a slow machine the timer may fire in the first tick; the work still continues.
  await nextTick();
  over = true;
  expect(begun).toBeGreaterThan(10);
});

test("work that throws is not started again, and keeps no other from being started", async () => {
  const caught: unknown[] = [];
  process.setUncaughtExceptionCaptureCallback((error) => caught.push(error));
  onTestFinished(() => process.setUncaughtExceptionCaptureCallback(null));
  const begun: number[] = [];
  const enter = createTickBudget<number>((work) => {
    begun.push(work);
    if (work === 1) throw new Error("thrown");
  }, 1);
  for (let work = 0; work < 4; work++) enter(work);
  while (begun.length < 4) await nextTick();
  await nextTick();
  expect([begun, caught]).toEqual([[0, 1, 2, 3], [new Error("thrown")]]);
});

import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { paceAt, startWork } from "../../src/keys/time-box.ts";

const onChanged = () => {};
const SLICE = paceAt(0).slice;

test("a busy process makes smaller steps and longer pauses", () => {
  const [idle, busy] = [paceAt(0.3), paceAt(0.9)];
  expect(busy.slice).toBeLessThan(idle.slice);
  expect(busy.pause).toBeGreaterThan(10 * idle.pause);
});

/** Other work does not use the event loop until the test ends. */
function useIdleProcess(): void {
  const utilization = vi.spyOn(performance, "eventLoopUtilization");
  utilization.mockReturnValue({ idle: 1, active: 0, utilization: 0 });
  onTestFinished(() => utilization.mockRestore());
}

test("work ends with the step that is done", async () => {
  useIdleProcess();
  const slices: number[] = [];
  const work = startWork({ mayContinue: () => true, onChanged });
  expect(await work(async (slice) => slices.push(slice) === 3)).toBe(true);
  expect(slices).toEqual([SLICE, SLICE, SLICE]);
});

test("work ends after the step after which it may not continue", async () => {
  let steps = 0;
  expect(await startWork({ mayContinue: () => steps < 2, onChanged })(async () => ++steps === 100)).toBe(false);
  expect(steps).toBe(2);
});

test("work ends with the step during which its time is over", async () => {
  useIdleProcess();
  let [steps, time] = [0, performance.now()];
  const clock = vi.spyOn(performance, "now").mockImplementation(() => time);
  onTestFinished(() => clock.mockRestore());
  const work = startWork({ mayContinue: () => true, onChanged });
  const isComplete = await work(async () => {
    time += 1_000;
    return ++steps === 100;
  });
  expect([isComplete, steps]).toEqual([false, 6]);
});

test("while other work keeps the event loop busy, steps become smaller", async () => {
  const slices: number[] = [];
  const spin = setInterval(() => {
    for (const end = performance.now() + 20; performance.now() < end; );
  }, 1);
  try {
    await startWork({ mayContinue: () => true, onChanged })(async (slice) => {
      slices.push(slice);
      await nextTurn();
      return slices.length === 4 || slice < SLICE;
    });
  } finally {
    clearInterval(spin);
  }
  expect(slices.at(-1)).toBe(paceAt(1).slice);
});

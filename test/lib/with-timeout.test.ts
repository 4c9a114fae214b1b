import { stat } from "node:fs";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { withTimeout } from "../../src/lib/with-timeout.ts";

const never = new Promise<never>(() => {});

test("work that settles in time has its own result", async () => {
  expect(await withTimeout(Promise.resolve("done"), 60_000, () => "late")).toBe("done");
  await expect(withTimeout(Promise.reject(new Error("failed")), 60_000, () => "late")).rejects.toThrow("failed");
});

test("a result that arrives while the event loop is blocked is in time", async () => {
  const result = withTimeout(promisify(stat)("/"), 10, () => "late");
  const end = performance.now() + 100;
  while (performance.now() < end);
  expect(await result).not.toBe("late");
});

test("work that does not has the result of onTimeout, or what that throws", async () => {
  expect(await withTimeout(never, 1, () => "late")).toBe("late");
  const late = withTimeout(never, 1, () => {
    throw new Error("late");
  });
  await expect(late).rejects.toThrow("late");
});

test("no timer is left, and a late rejection is ignored", async () => {
  const before = timers();
  await withTimeout(Promise.resolve(), 60_000, () => {});
  expect(timers()).toBeLessThanOrEqual(before);
  const work = Promise.withResolvers<void>();
  await withTimeout(work.promise, 1, () => {});
  work.reject(new Error("too late"));
});

/** Number of timers of this process; the test runner has some too. */
function timers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
}

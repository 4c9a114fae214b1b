import fc from "fast-check";
import { expect, test } from "vitest";
import { run, scenario } from "./scenario.ts";

/** Scenarios; 60 take seven seconds. */
const RUNS = Number(process.env.KEYHOLD_LIMIT_RUNS ?? 60);

test("no window exceeds the bound", { timeout: RUNS * 3_000 }, async () => {
  let part = 0;
  const property = fc.asyncProperty(scenario, async (options) => {
    const fullest = await run(options);
    expect(fullest.excess).toBeLessThanOrEqual(1e-6);
    part = Math.max(part, fullest.part);
  });
  await fc.assert(property, { numRuns: RUNS });
  console.info(`the fullest window had ${(100 * part).toFixed(1)} % of its bound`);
  expect(part).toBeGreaterThanOrEqual(0.95);
});

import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { seededBy } from "../support/seeded.ts";
import { run } from "./run.ts";

/** A short run of `npm run test:faults`. */

const { seed } = seededBy("KEYHOLD_FAULTS_SEED");

test("three nodes return no wrong verdict under faults", { timeout: 120_000 }, async () => {
  const { totals, table, violations, unexpected } = await run({
    seed,
    dir: await mkdtemp(join(inject("testDir"), "faults-")),
    seconds: 10,
    nodes: 3,
    faults: ["node stopped", "node cut off", "feed cut", "PostgreSQL killed", "network slow"],
    defect: null,
    stopAtFirstViolation: false,
  });
  console.info(table);
  expect({ violations, unexpected }).toEqual({ violations: [], unexpected: [] });
  expect(totals.missing).toEqual([]);
  expect(totals.verifies).toBeGreaterThan(1_000);
  expect(totals.mutations).toBeGreaterThan(50);
});

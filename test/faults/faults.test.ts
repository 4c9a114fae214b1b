import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { seededBy } from "../support/seeded.ts";
import type { FaultName } from "./faults.ts";
import { type Result, type RunOptions, run } from "./run.ts";
import type { Sabotage } from "./sabotage.ts";

/** Short runs of what `npm run test:faults` does at length. */

const { seed } = seededBy("KEYHOLD_FAULTS_SEED");

async function play(options: Pick<RunOptions, "faults"> & Partial<RunOptions>): Promise<Result> {
  const dir = await mkdtemp(join(inject("testDir"), "faults-"));
  return run({ seed, dir, seconds: 10, nodes: 3, sabotage: null, isOverAtFirst: false, ...options });
}

test("revoked means revoked on three nodes, whatever befalls them", { timeout: 120_000 }, async () => {
  const { totals, table, violations, unexpected } = await play({
    faults: ["node stopped", "node cut off", "feed cut", "PostgreSQL killed", "network slow"],
  });
  console.info(table);
  expect({ violations, unexpected }).toEqual({ violations: [], unexpected: [] });
  expect(totals.verifies).toBeGreaterThan(1_000);
  expect(totals.mutations).toBeGreaterThan(50);
});

/** Each part of the argument, and faults under which it must be missed when it is taken away. */
const SABOTAGES: readonly (readonly [Sabotage, readonly FaultName[]])[] = [
  ["lease", ["node stopped"]],
  ["fence", ["network slow"]],
  ["wait", ["network slow"]],
];

test.each(SABOTAGES)(
  "the checker finds what goes wrong without the %s",
  { timeout: 180_000 },
  async (sabotage, faults) => {
    const { violations } = await play({ sabotage, faults, seconds: 60, isOverAtFirst: true });
    console.info(`without the ${sabotage}: ${violations[0]?.text}`);
    expect(violations.length).toBeGreaterThan(0);
  },
);

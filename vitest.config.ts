import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Begins with what takes a minute: at the end it would run alone, with the other workers done. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => moduleId.includes("/test/faults/");
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/** What mostly waits for processes that start and end: left out, so that `npm test` takes less than five minutes on two cores. */
export const LONG_TESTS = ["test/package/*.test.ts", "test/durability/workers.test.ts", "test/durability/bulk.test.ts"];

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // `npm run test:long` runs them.
    exclude: LONG_TESTS,
    globalSetup: ["test/support/global-setup.ts"],
    // Suites share what they import: with a worker of its own for every file, starting workers takes longer than the tests.
    isolate: false,
    // One fewer than there are cores, but two: many tests wait, for servers that start or for time limits.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    sequence: { sequencer: LongestFirst },
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});

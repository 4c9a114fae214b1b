import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    // Suites share what they import: with a worker of its own for every file, starting workers takes longer than the tests.
    isolate: false,
    // One fewer than there are cores, but two: many tests wait, for servers that start or for time limits.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});

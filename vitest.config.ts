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

/**
 * Left out, so that `npm test` takes about five minutes on two cores: what starts many processes or waits for time limits of ten seconds.
 * `npm run test:long` runs it. Of each behaviour `npm test` keeps a faster test.
 */
export const LONG_TESTS = [
  "test/package/*.test.ts",
  // Processes that are killed, restarted or replaced.
  "test/durability/{backup,bulk,embedded-restarts,kill,rolling,stop,uncaught-workers,workers}.test.ts",
  "test/embedded-postgres/os-user.test.ts",
  // Databases that do not answer, that changed their primary, or without notifications; two servers with different root secrets.
  "test/durability/{hung-backend,races-root-secrets,unresponsive-database}.test.ts",
  "test/cluster/{adoption-outages,without-notifications}.test.ts",
  "test/cli/doctor-failover.test.ts",
  // Every setting of sessions, in every place.
  "test/server/session-settings.test.ts",
  // Many runs of a command.
  "test/cli/{secrets-of-servers,import/hash-import,import/resume,import/tables,keys/keys-options}.test.ts",
  "test/docs/long-pages.test.ts",
  // A hundred thousand keys.
  "test/auth/many-descendants.test.ts",
  // A test of `npm run test:hostile`.
  "test/hostile/runner.test.ts",
];

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // `npm run test:long` runs them.
    exclude: LONG_TESTS,
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: ["test/support/seed-properties.ts"],
    // Suites share what they import: with a worker of its own for every file, starting workers takes longer than the tests.
    isolate: false,
    // One fewer than there are cores, but two: many tests wait, for servers that start or for time limits.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    sequence: { sequencer: LongestFirst },
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});

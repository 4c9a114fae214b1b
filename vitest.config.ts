import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

/**
 * Left out of `npm test`, which is to take less than five minutes on two cores: what starts many processes, waits for time limits of ten
 * seconds, or takes long by itself. `npm run test:long` runs it.
 */
export const LONG_TESTS = [
  "test/package/*.test.ts",
  // Processes that are killed, restarted or replaced.
  "test/durability/{backup,bulk,database,embedded-restarts,kill,rolling,stop,uncaught,uncaught-workers,workers}.test.ts",
  "test/embedded-postgres/{os-user,remains,start}.test.ts",
  "test/upgrade/fixture.test.ts",
  // Databases that do not answer, that changed their primary, or without notifications; two servers with different root secrets.
  "test/durability/{hung-backend,races-root-secrets,unresponsive-database}.test.ts",
  "test/cluster/{adoption-outages,failover,without-notifications}.test.ts",
  "test/cli/{doctor-failover,unreachable}.test.ts",
  // Every setting of sessions, in every place.
  "test/server/session-settings.test.ts",
  // Many runs of a command.
  "test/cli/{doctor,secrets-of-servers,import/hash-import,import/resume,import/tables,keys/keys,keys/keys-options,keys/terminal}.test.ts",
  // Vectors that test/credential/hash has too, both algorithms in every call, the largest responses, plans of large tables.
  "test/conformance/{hash-vectors,response-limits,signing-algorithm}.test.ts",
  "test/postgres/list-plans.test.ts",
  "test/docs/long-pages.test.ts",
  // Tens of thousands of keys.
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
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});

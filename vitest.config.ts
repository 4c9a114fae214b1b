import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

/**
 * Left out of `npm test`, which is to take less than five minutes on two cores: what starts many processes, waits for time limits of ten
 * seconds, or takes long by itself. `npm run test:long` runs it.
 */
export const LONG_TESTS = [
  "test/package/*.test.ts",
  // Processes that are killed, restarted or replaced.
  "test/durability/{backup,bulk,database,embedded-restarts,kill,quotas,rolling,stop,uncaught,uncaught-workers,usage,workers}.test.ts",
  "test/embedded-postgres/{os-user,remains,sharing,start}.test.ts",
  "test/observability/workers.test.ts",
  "test/upgrade/fixture.test.ts",
  // Databases that do not answer, that changed their primary, or without notifications; two servers with different root secrets.
  "test/durability/{hung-backend,limits-outage,lost-responses,outage-log,races-root-secrets,unresponsive-database}.test.ts",
  "test/cluster/{adoption-outages,expiry,failover,stale,unconfirmed,without-notifications}.test.ts",
  "test/conformance/rotation-of-root-secret.test.ts",
  "test/cli/{doctor-failover,unreachable}.test.ts",
  // Clusters that lose leases or clocks, and races of imports on three nodes; the model of the protocol.
  "test/cluster/{clocks,hash-imports,membership,model}.test.ts",
  // Each server that is killed keeps the others waiting until its lease has ended.
  "test/webhooks/nodes.test.ts",
  // Connections that are cut under load, concurrent inserts of several servers, plans of large tables.
  "test/postgres/{audit-plans,batch-inserts,expiry-events,insert,list-plans,point-plans,pool,primary}.test.ts",
  // Every setting of sessions, in every place.
  "test/server/session-settings.test.ts",
  // Many runs of a command.
  "test/cli/{actors,audit/audit,audit/verify,doctor,secrets-of-servers,webhooks,keys/bulk-confirmation,keys/keys,keys/keys-options,keys/terminal,keys/wait-idle}.test.ts",
  "test/cli/import/{hash-import,import,resume,tables}.test.ts",
  "test/server/config/unknown-variables.test.ts",
  "test/interop/protected-service.test.ts",
  // Every field of every RPC, random inputs, all logs, the largest responses, all vectors, both algorithms in every call.
  "test/conformance/{bad-input-fields,bad-input-random,hash-vectors,log-secrets,response-limits,signing-algorithm}.test.ts",
  "test/hashing/vectors.test.ts",
  "test/durability/request-memory.test.ts",
  "test/transport/{openapi/live,fast-path/codecs/verify-requests}.test.ts",
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
    // The test of clients in other languages installs packages below test/.
    exclude: ["**/node_modules/**", ...LONG_TESTS],
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: ["test/support/seed-properties.ts"],
    // Suites share what they import: with a worker of its own for every file, starting workers takes longer than the tests.
    isolate: false,
    // Node.js itself loads the sources, as it does for the server: without transforms, tests take an eighth less CPU time.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Many tests wait, for servers that start or for time limits: three keep two cores busier than two do.
    maxWorkers: Math.max(3, availableParallelism()),
    // The gate sets it for suites with time limits, and on a slow machine, where servers lose leases, and calls end before they are done.
    retry: Number(process.env.KEYHOLD_TEST_RETRIES ?? 0),
    // They end what hangs. Seen: a machine at an eighth of the usual speed.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // As for `eventually`: a busy machine may need more than a second.
    expect: { poll: { timeout: 180_000 } },
  },
});

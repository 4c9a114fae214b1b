export interface Suite {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** Environment variables that shorten the suite for the gate; null: the gate leaves it out. */
  readonly gate: Readonly<Record<string, string>> | null;
  /**
   * Suites with `cores` compute, and run one after another. Those with `clocks` mostly wait, for leases and restarts, and run beside them.
   * `alone` runs before both: its tests have two workers, and threads with the policy SCHED_IDLE, which a busy machine does not run.
   */
  readonly bound: "alone" | "cores" | "clocks";
}

const FAST_PATH_TESTS = ["crashes", "half-close", "no-host", "refused-requests", "unfinished"];

/**
 * All suites. The gate (`.ci/run`) has fixed seeds and keeps of each what has found most per minute; CONTRIBUTING.md says what that is.
 * `npm run test:release` runs them at full length.
 */
export const SUITES: readonly Suite[] = [
  { name: "tests", command: ["vitest", "run"], gate: {}, bound: "alone" },
  {
    name: "packages, killed processes, time limits, long pages",
    command: ["npm", "run", "--silent", "test:long"],
    gate: { KEYHOLD_FAULT_ROUNDS: "12" },
    bound: "alone",
  },
  {
    name: "the API without the fast path",
    command: [
      ...(["env", "KEYHOLD_FAST_PATH=off", "vitest", "run", "test/conformance", "test/auth"] as const),
      ...FAST_PATH_TESTS.map((name) => `test/transport/${name}.test.ts`),
    ],
    gate: {},
    bound: "alone",
  },
  {
    name: "failovers of the database",
    command: ["npm", "run", "--silent", "test:failover"],
    gate: { KEYHOLD_FAILOVER_ONLY: "2b,5c PgBouncer,6,7 15 s" },
    bound: "clocks",
  },
  {
    name: "faults of a cluster",
    command: ["npm", "run", "--silent", "test:faults"],
    gate: { KEYHOLD_FAULTS_SECONDS: "75" },
    bound: "clocks",
  },
  {
    name: "upgrade from release 0.1 under load",
    command: ["npm", "run", "--silent", "test:upgrade"],
    gate: { KEYHOLD_UPGRADE_CHECKER: "off" },
    bound: "clocks",
  },
  {
    name: "conformance of Connect, gRPC and gRPC-Web",
    command: ["npm", "run", "--silent", "test:conformance"],
    gate: {},
    bound: "cores",
  },
  {
    name: "clients in other languages",
    command: ["npm", "run", "--silent", "test:interop", "--", "--require-all"],
    gate: {},
    bound: "cores",
  },
  { name: "deployment files", command: ["npm", "run", "--silent", "check:deploy"], gate: {}, bound: "cores" },
  {
    name: "gateways in front of an application",
    command: ["npm", "run", "--silent", "check:gateways"],
    gate: { KEYHOLD_TRAEFIK: "off" },
    bound: "cores",
  },
  {
    name: "hostile inputs",
    command: ["npm", "run", "--silent", "test:hostile"],
    // Without floods, which no quiet run has shown to pass yet.
    gate: {
      KEYHOLD_HOSTILE_SECONDS: "90",
      KEYHOLD_HOSTILE_ONLY: "http1,http2,framing,credentials,lists,costs,h2spec,schemathesis",
    },
    bound: "cores",
  },
  { name: "model of the protocol", command: ["npm", "run", "--silent", "model"], gate: null, bound: "cores" },
  { name: "soak", command: ["npm", "run", "--silent", "test:soak"], gate: null, bound: "clocks" },
];

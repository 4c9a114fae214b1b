export interface Suite {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** Environment variables that shorten the suite for the gate; null: the gate leaves it out. */
  readonly gate: Readonly<Record<string, string>> | null;
  /** Whether it needs both cores: it has workers of its own, and threads with the policy SCHED_IDLE, which a busy machine does not run. */
  readonly isAlone?: true;
  /** Whether the gate runs it on a slow machine, too, where it takes an hour. */
  readonly runsIfSlow?: true;
  /** Whether its tests assert times of seconds. The gate repeats one that fails once: a machine may stand still for longer than that. */
  readonly hasTimeLimits?: true;
  /** Whether its temporary files are in memory, if there is room. */
  readonly isInMemory?: true;
}

const npm = (script: string, ...args: readonly string[]) => ["npm", "run", "--silent", script, ...args] as const;

/** Tests of what the fast path answers. */
const FAST_PATH_TESTS = [
  ...["protocols", "rest-verify", "rest-errors", "rest-limits", "cache", "ip-restriction"].map(
    (name) => `test/conformance/${name}`,
  ),
  ...["matrix", "client-address", "rate-limits", "oidc"].map((name) => `test/auth/${name}`),
  ...["crashes", "half-close", "no-host", "refused-requests", "unfinished"].map((name) => `test/transport/${name}`),
];

/** Files of `npm run test:long` that together take minutes of CPU time, with no fault on record. */
const RELEASE_TESTS = [
  "auth/many-descendants",
  ...[
    ...["doctor-failover", "import/hash-import", "import/resume", "import/tables", "keys/bulk-confirmation"],
    "keys/wait-idle",
  ].map((name) => `cli/${name}`),
  "cluster/model",
  ...["hash-vectors", "signing-algorithm"].map((name) => `conformance/${name}`),
  ...["embedded-restarts", "races-root-secrets", "uncaught", "uncaught-workers", "usage", "workers"].map(
    (name) => `durability/${name}`,
  ),
  ...["os-user", "remains", "sharing"].map((name) => `embedded-postgres/${name}`),
  "hostile/runner",
  ...["batch-inserts", "insert"].map((name) => `postgres/${name}`),
  "server/config/unknown-variables",
  "webhooks/nodes",
].map((name) => `test/${name}.test.ts`);

/**
 * All suites. The gate (`.ci/run`) has fixed seeds and keeps of each what has found most per minute; CONTRIBUTING.md says what that is.
 * `npm run test:release` runs them at full length. Those that compute most are first and those that mostly wait are last: the gate begins at both
 * ends, with two at the latter.
 */
export const SUITES: readonly Suite[] = [
  { name: "tests", command: ["vitest", "run"], gate: {}, isAlone: true, isInMemory: true, runsIfSlow: true },
  {
    name: "packages, killed processes, time limits, long pages",
    command: npm("test:long"),
    gate: { KEYHOLD_FAULT_ROUNDS: "4", KEYHOLD_LONG_EXCEPT: RELEASE_TESTS.join(",") },
    isAlone: true,
    hasTimeLimits: true,
  },
  {
    name: "verifications without the fast path",
    command: ["env", "KEYHOLD_FAST_PATH=off", "vitest", "run", ...FAST_PATH_TESTS],
    gate: null,
    isAlone: true,
  },
  {
    name: "clients in other languages",
    command: npm("test:interop", "--", "--require-all"),
    // Without the clients that generators make of the OpenAPI description for Java, Python and Rust, and the examples in Java and Rust: they
    // take more than half of the time, with no fault on record.
    gate: {
      KEYHOLD_INTEROP_ONLY: [
        ...["Go", "Python", "Java", "curl", "browser", "grpcurl", "protoc", "Rust", "OpenAPI TypeScript", "tlog"],
        ...["browser", "curl", "go", "python", "typescript", "webhooks"].map((name) => `example ${name}`),
      ].join(","),
    },
  },
  { name: "conformance of Connect, gRPC and gRPC-Web", command: npm("test:conformance"), gate: {} },
  {
    name: "console in a browser",
    command: npm("check:console"),
    gate: {
      KEYHOLD_CONSOLE_EVERY: "3",
      KEYHOLD_CONSOLE_EXCEPT: ["screenshots", "key-page-embedded", "load"]
        .map((name) => `test/console/${name}.check.ts`)
        .join(","),
    },
    isAlone: true,
    isInMemory: true,
  },
  { name: "deployment files", command: npm("check:deploy"), gate: {} },
  { name: "hostile inputs", command: npm("test:hostile"), gate: { KEYHOLD_HOSTILE_SECONDS: "75" } },
  { name: "upgrade from release 0.1 under load", command: npm("test:upgrade"), gate: null },
  { name: "faults of a cluster", command: npm("test:faults"), gate: { KEYHOLD_FAULTS_SECONDS: "75" } },
  {
    name: "failovers of the database",
    command: npm("test:failover"),
    gate: { KEYHOLD_FAILOVER_ONLY: "5c PgBouncer,6,7 15 s" },
  },
  {
    name: "gateways in front of an application",
    command: npm("check:gateways"),
    gate: { KEYHOLD_TRAEFIK: "off" },
    hasTimeLimits: true,
  },
  { name: "model of the protocol", command: npm("model"), gate: null },
  { name: "soak", command: npm("test:soak"), gate: null },
];

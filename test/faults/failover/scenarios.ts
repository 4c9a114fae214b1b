import type { Defect } from "../fault-injection.ts";
import { type PausePoint, pointsOf } from "../pause-points.ts";
import type { Replication } from "./fixture.ts";
import {
  acceptDatabase,
  all,
  awaitReady,
  backUp,
  blockStandby,
  type Connections,
  dropPackets,
  expectStale,
  expectUnready,
  killPrimary,
  pauseDuring,
  pauseReplay,
  promote,
  promoteByMistake,
  type Redirection,
  redirect,
  rejoin,
  replaceStandby,
  restore,
  restoreBackup,
  resume,
  type Step,
  stopPrimary,
  suspend,
  wait,
} from "./steps.ts";

export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly replication: Replication;
  /** Additional environment variables of the nodes. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Seconds for which cached verdicts may be returned without a lease. */
  readonly staleGrace?: number;
  readonly needsPgBouncer?: true;
  /** Acknowledged changes may be lost, since the standby did not have them. */
  readonly mayLoseChanges?: true;
  /** Steps under load. Afterwards all connections lead to the primary, and all nodes must become ready. */
  readonly steps: readonly Step[];
}

const LONG_LEASE = { KEYHOLD_LEASE_TTL: "15s" };

const NOTIFICATIONS: Connections = { nodes: [1], proxies: ["feed"] };

const DATA: Connections = { proxies: ["data"] };

/** Like PAUSE and RESUME of PgBouncer: no change waits for the standby when that is promoted. */
const redirectData: Step = all(rejoin, dropPackets(DATA), wait(0.3), promote, redirect(DATA), restore(DATA));

const splitData: readonly Step[] = [redirectData, wait(5), expectUnready()];
const splitDataLong: readonly Step[] = [redirectData, wait(14), expectUnready()];

/** Points where two nodes may stop while others, or all, are redirected to the new primary. */
const POINTS_OF_SESSION = pointsOf("renewal", "grant", "barrier", "acknowledgements");
const POINTS_OF_JOIN = pointsOf("session", "check", "join", "renewal");

const PAUSES: readonly (readonly [readonly PausePoint[], Redirection])[] = [
  [POINTS_OF_SESSION, { nodes: [3] }],
  [POINTS_OF_SESSION, { nodes: [3] }],
  [POINTS_OF_JOIN, {}],
];

export const SCENARIOS: readonly Scenario[] = [
  { name: "1 on", title: "primary killed", replication: "on", steps: [killPrimary, wait(1), promote] },
  {
    name: "1 remote_apply",
    title: "primary killed",
    replication: "remote_apply",
    steps: [killPrimary, wait(1), promote],
  },
  { name: "1b", title: "planned switchover", replication: "on", steps: [stopPrimary, promote] },
  {
    name: "2",
    title: "split brain: nodes 1 and 2 stay connected to the old primary",
    replication: "on",
    steps: [promote, redirect({ nodes: [3] }), wait(5)],
  },
  {
    name: "2b",
    title: "the same, nodes 1 and 2 paused for 7 s",
    replication: "on",
    steps: [suspend(1, 2), promote, redirect({ nodes: [3] }), wait(7), resume(1, 2), wait(4)],
  },
  {
    name: "3b",
    title: "only new connections lead to the new primary",
    replication: "asynchronous",
    mayLoseChanges: true,
    steps: [promote, redirect({ isReset: false }), wait(5)],
  },
  {
    name: "4",
    title: "nodes 1 and 2 paused at random steps of the protocol",
    replication: "on",
    steps: PAUSES.flatMap(([points, redirected]) => [
      pauseDuring([1, 2], points, all(promote, redirect(redirected)), 4),
      wait(2),
      redirect(),
      awaitReady,
      replaceStandby,
    ]),
  },
  { name: "5b", title: "only data connections redirected to the new primary", replication: "on", steps: splitData },
  {
    name: "5b 15 s",
    title: "the same with a lease of 15 s",
    replication: "on",
    environment: LONG_LEASE,
    steps: splitDataLong,
  },
  {
    name: "5c",
    title: "only data connections redirected to the new primary",
    replication: "asynchronous",
    mayLoseChanges: true,
    steps: splitData,
  },
  {
    name: "5b PgBouncer",
    title: "PgBouncer redirected to the new primary, notification connections not",
    replication: "on",
    needsPgBouncer: true,
    steps: splitData,
  },
  {
    name: "5b PgBouncer 15 s",
    title: "the same with a lease of 15 s",
    replication: "on",
    environment: LONG_LEASE,
    needsPgBouncer: true,
    steps: splitDataLong,
  },
  {
    name: "5c PgBouncer",
    title: "PgBouncer redirected to the new primary, notification connections not",
    replication: "asynchronous",
    mayLoseChanges: true,
    needsPgBouncer: true,
    steps: splitData,
  },
  {
    name: "5d",
    title: "the same, after all nodes joined again at the old primary",
    replication: "asynchronous",
    environment: LONG_LEASE,
    mayLoseChanges: true,
    steps: [promote, rejoin, redirect({ proxies: ["data"] }), wait(5), expectUnready()],
  },
  {
    name: "6",
    title: "an older base backup restored while the nodes run",
    replication: "asynchronous",
    mayLoseChanges: true,
    // A node that was cut off since before the backup would not know that it is older.
    steps: [backUp, wait(3), awaitReady, restoreBackup, acceptDatabase(5), awaitReady],
  },
  {
    name: "7",
    title: "the only synchronous standby unreachable for 25 s",
    replication: "on",
    steps: [blockStandby(25)],
  },
  {
    name: "7 15 s",
    title: "the same for 10 s with a lease of 15 s",
    replication: "on",
    environment: LONG_LEASE,
    steps: [rejoin, blockStandby(10)],
  },
  {
    name: "8",
    title: "data connections of nodes 2 and 3 lead to a lagging standby",
    replication: "on",
    steps: [pauseReplay, redirect({ to: "standby", nodes: [2, 3], proxies: ["data"] }), wait(6)],
  },
  {
    name: "8b",
    title: "data connections of nodes 2 and 3 lead to a standby promoted by mistake",
    replication: "asynchronous",
    environment: LONG_LEASE,
    steps: [
      rejoin,
      promoteByMistake,
      redirect({ to: "standby", nodes: [2, 3], proxies: ["data"] }),
      wait(6),
      expectUnready(2, 3),
    ],
  },
  {
    name: "9",
    title: "node 1 partitioned, KEYHOLD_STALE_GRACE=5s",
    replication: "on",
    staleGrace: 5,
    steps: [dropPackets({ nodes: [1] }), wait(12), expectStale, restore({ nodes: [1] })],
  },
  {
    name: "10",
    title: "notifications do not reach node 1",
    replication: "on",
    steps: [dropPackets(NOTIFICATIONS), wait(6), expectUnready(1), restore(NOTIFICATIONS)],
  },
];

/** For each protection, the scenario that must detect its absence. */
export const DETECTED_BY: Readonly<Partial<Record<Defect, string>>> = {
  echo: "10",
  "server identity of reads": "8b",
  "server identity of changes": "5d",
  "lease of uncached verdicts": "2b",
  "cancelled replication": "7 15 s",
  "durable repeat": "7 15 s",
  rollback: "6",
};

import type { Defect } from "../fault-injection.ts";
import { type PausePoint, pointsOf } from "../pause-points.ts";
import type { Replication } from "./stage.ts";
import {
  acceptDatabase,
  all,
  backUp,
  becomeReady,
  cutOff,
  expectStale,
  expectUnready,
  joinAgain,
  killPrimary,
  type Move,
  move,
  type Place,
  pauseReplay,
  pausing,
  promote,
  promoteByMistake,
  replaceStandby,
  restore,
  restoreBackup,
  resume,
  type Step,
  stopPrimary,
  suspend,
  wait,
  withoutStandby,
} from "./steps.ts";

export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly replication: Replication;
  /** More of the environment of the nodes. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Seconds for which cached verdicts may be given without a lease. */
  readonly staleGrace?: number;
  readonly needsPgBouncer?: true;
  /** Acknowledged changes may be missing in the end, since the standby did not have them. */
  readonly mayLose?: true;
  /** What happens under load. Afterwards all nodes are moved to the primary, and must become ready. */
  readonly steps: readonly Step[];
}

const LONG_LEASE = { KEYHOLD_LEASE_TTL: "15s" };

const NOTIFICATIONS: Place = { nodes: [1], proxies: ["feed"] };

const DATA: Place = { proxies: ["data"] };

/** As PgBouncer does it by PAUSE and RESUME: no change waits for the standby when that is promoted. */
const moveData: Step = all(joinAgain, cutOff(DATA), wait(0.3), promote, move(DATA), restore(DATA));

const splitData: readonly Step[] = [moveData, wait(5), expectUnready()];
const splitDataLong: readonly Step[] = [moveData, wait(14), expectUnready()];

/** Where two nodes may stop while others are moved to the new primary, and while all are. */
const POINTS_OF_SESSION = pointsOf("renewal", "grant", "barrier", "acknowledgements");
const POINTS_OF_JOIN = pointsOf("session", "check", "join", "renewal");

const PAUSES: readonly (readonly [readonly PausePoint[], Move])[] = [
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
    title: "split brain: nodes 1 and 2 stay at the old primary",
    replication: "on",
    steps: [promote, move({ nodes: [3] }), wait(5)],
  },
  {
    name: "2b",
    title: "the same, nodes 1 and 2 paused for 7 s",
    replication: "on",
    steps: [suspend(1, 2), promote, move({ nodes: [3] }), wait(7), resume(1, 2), wait(4)],
  },
  {
    name: "3b",
    title: "only new connections lead to the new primary",
    replication: "asynchronous",
    mayLose: true,
    steps: [promote, move({ isReset: false }), wait(5)],
  },
  {
    name: "4",
    title: "nodes 1 and 2 paused at steps of the protocol that the seed chooses",
    replication: "on",
    steps: PAUSES.flatMap(([points, moved]) => [
      pausing([1, 2], points, all(promote, move(moved)), 4),
      wait(2),
      move(),
      becomeReady,
      replaceStandby,
    ]),
  },
  { name: "5b", title: "only data moved to the new primary", replication: "on", steps: splitData },
  {
    name: "5b 15 s",
    title: "the same with a lease of 15 s",
    replication: "on",
    environment: LONG_LEASE,
    steps: splitDataLong,
  },
  {
    name: "5c",
    title: "only data moved to the new primary",
    replication: "asynchronous",
    mayLose: true,
    steps: splitData,
  },
  {
    name: "5b PgBouncer",
    title: "PgBouncer moved to the new primary, notifications not",
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
    title: "PgBouncer moved to the new primary, notifications not",
    replication: "asynchronous",
    mayLose: true,
    needsPgBouncer: true,
    steps: splitData,
  },
  {
    name: "5d",
    title: "the same, after all nodes joined again at the old primary",
    replication: "asynchronous",
    environment: LONG_LEASE,
    mayLose: true,
    steps: [promote, joinAgain, move({ proxies: ["data"] }), wait(5), expectUnready()],
  },
  {
    name: "6",
    title: "an older base backup restored under the nodes",
    replication: "asynchronous",
    mayLose: true,
    steps: [backUp, wait(3), restoreBackup, acceptDatabase(5), becomeReady],
  },
  {
    name: "7",
    title: "the only synchronous standby unreachable for 25 s",
    replication: "on",
    steps: [withoutStandby(25)],
  },
  {
    name: "7 15 s",
    title: "the same for 10 s with a lease of 15 s",
    replication: "on",
    environment: LONG_LEASE,
    steps: [joinAgain, withoutStandby(10)],
  },
  {
    name: "8",
    title: "data of nodes 2 and 3 at a standby that lags behind",
    replication: "on",
    steps: [pauseReplay, move({ to: "standby", nodes: [2, 3], proxies: ["data"] }), wait(6)],
  },
  {
    name: "8b",
    title: "data of nodes 2 and 3 at a standby that was promoted by mistake",
    replication: "asynchronous",
    environment: LONG_LEASE,
    steps: [
      joinAgain,
      promoteByMistake,
      move({ to: "standby", nodes: [2, 3], proxies: ["data"] }),
      wait(6),
      expectUnready(2, 3),
    ],
  },
  {
    name: "9",
    title: "node 1 cut off, KEYHOLD_STALE_GRACE=5s",
    replication: "on",
    staleGrace: 5,
    steps: [cutOff({ nodes: [1] }), wait(12), expectStale, restore({ nodes: [1] })],
  },
  {
    name: "10",
    title: "notifications do not reach node 1",
    replication: "on",
    steps: [cutOff(NOTIFICATIONS), wait(6), expectUnready(1), restore(NOTIFICATIONS)],
  },
];

/** Scenarios in which a protection must be missed when it is taken out. */
export const EXPOSING: Readonly<Partial<Record<Defect, string>>> = {
  echo: "10",
  "server of reads": "8b",
  "server of changes": "5d",
  "renewal after the call": "2b",
  "cancelled replication": "7 15 s",
  "durable barrier": "7 15 s",
  rollback: "6",
};

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { ClusterNode, Proxies } from "../cluster.ts";
import type { PausePoint } from "../pause-points.ts";
import { RECOVERY, type Stage, untilReady } from "./stage.ts";

const COMMAND = resolve(import.meta.dirname, "../../../src/cli/keyhold.js");

/** Something that a scenario does, one after the other. */
export type Step = (stage: Stage) => Promise<void> | void;

export const wait =
  (seconds: number): Step =>
  () =>
    sleep(seconds * 1000);

/** The machine of the primary fails. */
export const killPrimary: Step = ({ primary }) => primary.kill();

/** Resolves when the standby has all that was committed. */
export const stopPrimary: Step = ({ primary }) => primary.stop();

/** The old primary, if it runs, goes on without a standby. */
export const promote: Step = async (stage) => {
  await stage.standby.promote();
  [stage.primary, stage.standby] = [stage.standby, stage.primary];
};

/** The primary stays the primary, and its standby becomes another. */
export const promoteByMistake: Step = ({ standby }) => standby.promote();

/** Which connections of which nodes. */
export interface Place {
  /** Numbers of nodes; by default all. */
  readonly nodes?: readonly number[];
  /** By default both. */
  readonly proxies?: readonly (keyof Proxies)[];
}

/** Where connections lead from now on. */
export interface Move extends Place {
  /** By default to the primary. */
  readonly to?: "primary" | "standby";
  /** Whether connections that are open are reset; by default they are. */
  readonly isReset?: boolean;
}

export const move =
  ({ to = "primary", nodes: numbers, proxies = ["data", "feed"], isReset = true }: Move = {}): Step =>
  async (stage) => {
    for (const node of chosen(stage, numbers)) {
      for (const name of proxies) {
        const isPooled = name === "data" && stage.pgbouncer !== null;
        if (!isPooled) node.proxies[name].redirect(stage[to].port);
        if (isReset && !isPooled) node.proxies[name].cut("rst");
      }
    }
    if (proxies.includes("data")) await stage.pgbouncer?.moveTo(stage[to]);
  };

export const suspend =
  (...numbers: readonly number[]): Step =>
  (stage) => {
    for (const node of chosen(stage, numbers)) node.suspend();
  };

export const resume =
  (...numbers: readonly number[]): Step =>
  (stage) => {
    for (const node of chosen(stage, numbers)) node.resume();
  };

/** Drops packets silently: connections hang on both sides. */
export const cutOff =
  ({ nodes: numbers, proxies: names = ["data", "feed"] }: Place): Step =>
  (stage) => {
    for (const { proxies } of chosen(stage, numbers)) for (const name of names) proxies[name].freeze("all");
  };

export const restore =
  ({ nodes: numbers, proxies: names = ["data", "feed"] }: Place): Step =>
  (stage) => {
    for (const { proxies } of chosen(stage, numbers)) for (const name of names) proxies[name].thaw("reset");
  };

/** All nodes take new leases at once, so that none renews its lease for a third of its time. */
export const joinAgain: Step = async (stage) => {
  for (const { proxies } of stage.nodes) proxies.feed.cut("rst");
  await sleep(500);
  await becomeReady(stage);
};

/** Expects nodes that receive no changes not to be ready; by default all nodes. */
export const expectUnready =
  (...numbers: readonly number[]): Step =>
  async (stage) => {
    for (const node of chosen(stage, numbers.length === 0 ? undefined : numbers))
      if (await node.isReady()) stage.violations.push(`${node.name} is ready although it receives no changes`);
  };

/** Some verdict was given without a lease, and marked so. */
export const expectStale: Step = ({ history, notes, violations }) => {
  notes.push(`${history.staleVerdicts} verdicts were marked as stale`);
  if (history.staleVerdicts === 0) violations.push("no verdict was given in the time of the grace");
};

/** Replays nothing more of what it receives. */
export const pauseReplay: Step = async ({ standby }) => {
  await standby.admin`SELECT pg_wal_replay_pause()`;
};

/** Backends of a node at the most: as many as docs/configuration.md says, and of its session a feed, a renewal, and one that ends. */
const MAX_BACKENDS = 10 + 8;
const MAX_SESSION_BACKENDS = 3;

/**
 * The only synchronous standby is unreachable for so long, while those who wait for it are cancelled. Nothing may be
 * acknowledged meanwhile, and the connections that wait must not become more and more.
 */
export const withoutStandby =
  (seconds: number): Step =>
  async (stage) => {
    await stage.standby.pause();
    const from = performance.now();
    const counts: Backends[] = [];
    while (performance.now() < from + seconds * 1000) {
      counts.push(await cancelWaits(stage));
      await sleep(50);
    }
    const until = performance.now();
    await stage.standby.resume();
    const acknowledged = stage.history.registers
      .flatMap(({ mutations }) => mutations)
      .filter((one) => one.began > from && one.acknowledged !== null && one.acknowledged < until);
    for (const { kind, node } of acknowledged)
      stage.violations.push(`${node} acknowledged a ${kind} that is not replicated`);
    expectAtMost(
      stage,
      "backends",
      MAX_BACKENDS,
      counts.map(({ all }) => all),
    );
    expectAtMost(
      stage,
      "backends of sessions",
      MAX_SESSION_BACKENDS,
      counts.map(({ session }) => session),
    );
  };

function expectAtMost({ nodes, notes, violations }: Stage, what: string, limit: number, counts: readonly number[]) {
  const most = Math.max(...counts);
  notes.push(`${counts[0]} ${what} became ${most} while the standby was unreachable`);
  if (most > nodes.length * limit) violations.push(`${most} ${what}, more than ${limit} a node`);
}

/** How many connections nodes have to the primary. */
interface Backends {
  readonly all: number;
  /** Of these, for notifications and for renewals of leases. */
  readonly session: number;
}

/**
 * Cancels the waits for the standby. One that waits holds the lock of all notifications (PostgreSQL, PreCommit_Notify), so that the others
 * wait for it in turn.
 */
async function cancelWaits({ primary }: Stage): Promise<Backends> {
  const backends = await primary.admin<{ pid: number; isWaiting: boolean; isSession: boolean }[]>`
    SELECT pid, coalesce(wait_event = 'SyncRep', false) AS "isWaiting",
      application_name IN ('keyhold feed', 'keyhold lease') AS "isSession"
    FROM pg_stat_activity WHERE usename = 'keyhold_server'`;
  for (const { pid } of backends.filter(({ isWaiting }) => isWaiting))
    await primary.admin`SELECT pg_cancel_backend(${pid})`;
  return { all: backends.length, session: backends.filter(({ isSession }) => isSession).length };
}

export const backUp: Step = ({ primary }) => primary.backUp();

/** The database is set back to the last backup, at the same address, behind the back of the nodes. */
export const restoreBackup: Step = async ({ primary }) => {
  await primary.kill();
  await primary.restore();
  await primary.start();
};

/** No node may become ready within these seconds, and each says why; then an operator accepts the database as it is. */
export const acceptDatabase =
  (seconds: number): Step =>
  async (stage) => {
    const nodes = stage.nodes.map((node) => ({ node, ready: untilReady({ nodes: [node] }, seconds * 1000) }));
    for (const { node, ready } of nodes) {
      if ((await ready) !== null) stage.violations.push(`${node.name} is ready on an older database without a word`);
      if (!(await refusesSoon(stage, [node])))
        stage.violations.push(`${node.name} has logged no error that says how to accept the database`);
    }
    await accept(stage);
  };

/**
 * What an operator does when nodes refuse a database that may lack changes: reads of it in the log, and accepts it. Does nothing
 * where none refuses.
 */
export const acceptIfRefused: Step = async (stage) => {
  if (!(await refusesSoon(stage, stage.nodes))) return;
  const refusing = await Promise.all(stage.nodes.map((node) => refuses(stage, node)));
  stage.notes.push(`${refusing.filter(Boolean).length} nodes refused the database until it was accepted`);
  await accept(stage);
};

/** Answers whether one of these nodes refuses the database, before all are ready. One that backs off looks at it seconds later. */
async function refusesSoon(stage: Stage, nodes: readonly ClusterNode[]): Promise<boolean> {
  for (const began = performance.now(); performance.now() < began + RECOVERY; await sleep(100)) {
    if ((await untilReady({ nodes }, 0)) !== null) return false;
    const refusing = await Promise.all(nodes.map((node) => refuses(stage, node)));
    if (refusing.includes(true)) return true;
  }
  return false;
}

async function accept(stage: Stage): Promise<void> {
  const env = { PATH: process.env.PATH, ...stage.environment, KEYHOLD_DATABASE_URL: stage.primary.url() };
  await promisify(execFile)(process.execPath, [COMMAND, "cluster", "accept-database"], { env }).catch((error) =>
    stage.violations.push(`keyhold cluster accept-database: ${error.stderr}`),
  );
}

/** Whether its log has the error that says how the database is accepted. */
async function refuses({ dir }: Stage, { name }: ClusterNode): Promise<boolean> {
  const log = await readFile(join(dir, `${name.replace(" ", "-")}.log`), "utf8");
  return log.split("\n").some((line) => line.includes("accept-database") && line.includes('"level":50'));
}

/** The nodes stop by themselves, each at one of these points, if they come there, and go on some seconds after the step. */
export const pausing =
  (numbers: readonly number[], points: readonly PausePoint[], step: Step, seconds: number): Step =>
  async (stage) => {
    const nodes = chosen(stage, numbers);
    for (const node of nodes) node.pauseAt(stage.choices.pick(points));
    await step(stage);
    await sleep(seconds * 1000);
    for (const node of nodes) {
      node.resume();
      node.pauseAt(null);
    }
  };

/** Steps one after the other, as one. */
export const all =
  (...steps: readonly Step[]): Step =>
  async (stage) => {
    for (const step of steps) await step(stage);
  };

export const becomeReady: Step = async (stage) => {
  if ((await untilReady(stage, RECOVERY)) === null) stage.violations.push("not all nodes became ready again");
};

/** Makes a synchronous standby of the primary in place of the one that it had. */
export const replaceStandby: Step = async (stage) => {
  const name = `standby${stage.history.nextNumber()}`;
  await stage.standby.kill();
  await stage.standby.close();
  stage.servers.splice(stage.servers.indexOf(stage.standby), 1);
  stage.standby = await stage.primary.addStandby(name);
  stage.servers.push(stage.standby);
  await stage.primary.configure({ synchronous_standby_names: name, synchronous_commit: "on" });
};

/** By number; all if none are given. */
function chosen({ nodes }: Stage, numbers?: readonly number[]): ClusterNode[] {
  return nodes.filter((_, place) => numbers?.includes(place + 1) ?? true);
}

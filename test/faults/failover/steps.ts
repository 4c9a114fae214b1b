import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { ClusterNode, Proxies } from "../cluster.ts";
import type { PausePoint } from "../pause-points.ts";
import { type Fixture, RECOVERY_TIMEOUT, untilReady } from "./fixture.ts";

const COMMAND = resolve(import.meta.dirname, "../../../src/cli/keyhold.js");

/** A step of a scenario; steps run sequentially. */
export type Step = (fixture: Fixture) => Promise<void> | void;

export const wait =
  (seconds: number): Step =>
  () =>
    sleep(seconds * 1000);

/** Simulates a failure of the primary's machine. */
export const killPrimary: Step = ({ primary }) => primary.kill();

/** Stops the primary; resolves when the standby has received all commits. */
export const stopPrimary: Step = ({ primary }) => primary.stop();

/** Promotes the standby. The old primary, if it runs, continues without a standby. */
export const promote: Step = async (fixture) => {
  await fixture.standby.promote();
  [fixture.primary, fixture.standby] = [fixture.standby, fixture.primary];
};

/** Promotes the standby while the primary remains in use. */
export const promoteByMistake: Step = ({ standby }) => standby.promote();

/** A selection of connections. */
export interface Connections {
  /** Numbers of nodes; default: all. */
  readonly nodes?: readonly number[];
  /** Default: both. */
  readonly proxies?: readonly (keyof Proxies)[];
}

/** A new target of connections. */
export interface Redirection extends Connections {
  /** Default: the primary. */
  readonly to?: "primary" | "standby";
  /** Whether open connections are reset; default: true. */
  readonly isReset?: boolean;
}

export const redirect =
  ({ to = "primary", nodes: numbers, proxies = ["data", "feed"], isReset = true }: Redirection = {}): Step =>
  async (fixture) => {
    for (const node of chosen(fixture, numbers)) {
      for (const name of proxies) {
        const isPooled = name === "data" && fixture.pgbouncer !== null;
        if (!isPooled) node.proxies[name].redirect(fixture[to].port);
        if (isReset && !isPooled) node.proxies[name].cut("rst");
      }
    }
    if (proxies.includes("data")) await fixture.pgbouncer?.redirectTo(fixture[to].url());
  };

export const suspend =
  (...numbers: readonly number[]): Step =>
  (fixture) => {
    for (const node of chosen(fixture, numbers)) node.suspend();
  };

export const resume =
  (...numbers: readonly number[]): Step =>
  (fixture) => {
    for (const node of chosen(fixture, numbers)) node.resume();
  };

/** Drops packets silently, so that connections hang on both sides. */
export const dropPackets =
  ({ nodes: numbers, proxies: names = ["data", "feed"] }: Connections): Step =>
  (fixture) => {
    for (const { proxies } of chosen(fixture, numbers)) for (const name of names) proxies[name].freeze("all");
  };

export const restore =
  ({ nodes: numbers, proxies: names = ["data", "feed"] }: Connections): Step =>
  (fixture) => {
    for (const { proxies } of chosen(fixture, numbers)) for (const name of names) proxies[name].thaw("reset");
  };

/** Makes all nodes acquire new leases at the same time, so that none renews its lease for a third of its duration. */
export const rejoin: Step = async (fixture) => {
  for (const { proxies } of fixture.nodes) proxies.feed.cut("rst");
  await sleep(500);
  await awaitReady(fixture);
};

/** Expects that nodes which receive no changes are not ready; default: all nodes. */
export const expectUnready =
  (...numbers: readonly number[]): Step =>
  async (fixture) => {
    for (const node of chosen(fixture, numbers.length === 0 ? undefined : numbers))
      if (await node.isReady()) fixture.violations.push(`${node.name} is ready although it receives no changes`);
  };

/** Expects that verdicts were returned without a lease, and marked as stale. */
export const expectStale: Step = ({ history, notes, violations }) => {
  notes.push(`${history.staleVerdicts} verdicts were marked as stale`);
  if (history.staleVerdicts === 0) violations.push("no verdict was returned in the grace period");
};

/** Pauses replay on the standby, which continues to receive WAL. */
export const pauseReplay: Step = async ({ standby }) => {
  await standby.admin`SELECT pg_wal_replay_pause()`;
};

/** Maximum number of backends of a node: those of docs/configuration.md; its session has a feed, a renewal, and one that is closing. */
const MAX_BACKENDS = 10 + 8;
const MAX_SESSION_BACKENDS = 3;

/**
 * Makes the only synchronous standby unreachable for this time, and cancels the statements that wait for it. No change may be
 * acknowledged meanwhile, and the number of waiting connections must stay bounded.
 */
export const blockStandby =
  (seconds: number): Step =>
  async (fixture) => {
    await fixture.standby.pause();
    const from = performance.now();
    const counts: Backends[] = [];
    while (performance.now() < from + seconds * 1000) {
      counts.push(await cancelWaits(fixture));
      await sleep(50);
    }
    const until = performance.now();
    await fixture.standby.resume();
    const acknowledged = fixture.history.registers
      .flatMap(({ mutations }) => mutations)
      .filter((one) => one.began > from && one.acknowledged !== null && one.acknowledged < until);
    for (const { kind, node } of acknowledged)
      fixture.violations.push(`${node} acknowledged a ${kind} that is not replicated`);
    expectAtMost(
      fixture,
      "backends",
      MAX_BACKENDS,
      counts.map(({ all }) => all),
    );
    expectAtMost(
      fixture,
      "backends of sessions",
      MAX_SESSION_BACKENDS,
      counts.map(({ session }) => session),
    );
  };

function expectAtMost({ nodes, notes, violations }: Fixture, what: string, limit: number, counts: readonly number[]) {
  const most = Math.max(...counts);
  notes.push(`${counts[0]} ${what} became ${most} while the standby was unreachable`);
  if (most > nodes.length * limit) violations.push(`${most} ${what}, more than ${limit} a node`);
}

/** Number of connections of the nodes to the primary. */
interface Backends {
  readonly all: number;
  /** Those for notifications and lease renewals. */
  readonly session: number;
}

/**
 * Cancels statements that wait for the standby. A waiting one holds the lock of all notifications (PostgreSQL, PreCommit_Notify), so that
 * the others wait for it.
 */
async function cancelWaits({ primary }: Fixture): Promise<Backends> {
  const backends = await primary.admin<{ pid: number; isWaiting: boolean; isSession: boolean }[]>`
    SELECT pid, coalesce(wait_event = 'SyncRep', false) AS "isWaiting",
      application_name IN ('keyhold feed', 'keyhold lease') AS "isSession"
    FROM pg_stat_activity WHERE usename = 'keyhold_server'`;
  for (const { pid } of backends.filter(({ isWaiting }) => isWaiting))
    await primary.admin`SELECT pg_cancel_backend(${pid})`;
  return { all: backends.length, session: backends.filter(({ isSession }) => isSession).length };
}

export const backUp: Step = ({ primary }) => primary.backUp();

/** Restores the last backup at the same address, without notice to the nodes. */
export const restoreBackup: Step = async ({ primary }) => {
  await primary.kill();
  await primary.restore();
  await primary.start();
};

/** Expects that no node becomes ready within these seconds and that each logs the reason; then accepts the database, like an operator. */
export const acceptDatabase =
  (seconds: number): Step =>
  async (fixture) => {
    const nodes = fixture.nodes.map((node) => ({ node, ready: untilReady({ nodes: [node] }, seconds * 1000) }));
    for (const { node, ready } of nodes) {
      if ((await ready) !== null)
        fixture.violations.push(`${node.name} is ready on an older database without an error`);
      if (!(await refusesSoon(fixture, [node])))
        fixture.violations.push(`${node.name} has logged no error with the command that accepts the database`);
    }
    await accept(fixture);
  };

/**
 * Accepts the database, like an operator who has read the log, if nodes refuse it because changes may be missing. Does nothing if no node
 * refuses it.
 */
export const acceptIfRefused: Step = async (fixture) => {
  if (!(await refusesSoon(fixture, fixture.nodes))) return;
  const refusing = await Promise.all(fixture.nodes.map((node) => refuses(fixture, node)));
  fixture.notes.push(`${refusing.filter(Boolean).length} nodes refused the database until it was accepted`);
  await accept(fixture);
};

/** Returns whether one of these nodes refuses the database before all are ready. A node in backoff checks it seconds later. */
async function refusesSoon(fixture: Fixture, nodes: readonly ClusterNode[]): Promise<boolean> {
  for (const began = performance.now(); performance.now() < began + RECOVERY_TIMEOUT; await sleep(100)) {
    if ((await untilReady({ nodes }, 0)) !== null) return false;
    const refusing = await Promise.all(nodes.map((node) => refuses(fixture, node)));
    if (refusing.includes(true)) return true;
  }
  return false;
}

async function accept(fixture: Fixture): Promise<void> {
  const env = { PATH: process.env.PATH, ...fixture.environment, KEYHOLD_DATABASE_URL: fixture.primary.url() };
  await promisify(execFile)(process.execPath, [COMMAND, "cluster", "accept-database"], { env }).catch((error) =>
    fixture.violations.push(`keyhold cluster accept-database: ${error.stderr}`),
  );
}

/** Returns whether its log has the error with the command that accepts the database. */
async function refuses({ dir }: Fixture, { name }: ClusterNode): Promise<boolean> {
  const log = await readFile(join(dir, `${name.replace(" ", "-")}.log`), "utf8");
  return log.split("\n").some((line) => line.includes("accept-database") && line.includes('"level":50'));
}

/** Runs a step while nodes stop themselves, each at one of these points if it reaches it; they continue some seconds after the step. */
export const pauseDuring =
  (numbers: readonly number[], points: readonly PausePoint[], step: Step, seconds: number): Step =>
  async (fixture) => {
    const nodes = chosen(fixture, numbers);
    for (const node of nodes) node.pauseAt(fixture.choices.pick(points));
    await step(fixture);
    await sleep(seconds * 1000);
    for (const node of nodes) {
      node.resume();
      node.pauseAt(null);
    }
  };

/** Combines steps into one. */
export const all =
  (...steps: readonly Step[]): Step =>
  async (fixture) => {
    for (const step of steps) await step(fixture);
  };

export const awaitReady: Step = async (fixture) => {
  if ((await untilReady(fixture, RECOVERY_TIMEOUT)) === null)
    fixture.violations.push("not all nodes became ready again");
};

/** Replaces the standby by a new synchronous one. */
export const replaceStandby: Step = async (fixture) => {
  const name = `standby${fixture.history.nextNumber()}`;
  await fixture.standby.kill();
  await fixture.standby.close();
  fixture.servers.splice(fixture.servers.indexOf(fixture.standby), 1);
  fixture.standby = await fixture.primary.addStandby(name);
  fixture.servers.push(fixture.standby);
  await fixture.primary.configure({ synchronous_standby_names: name, synchronous_commit: "on" });
};

/** Returns nodes by number; default: all. */
function chosen({ nodes }: Fixture, numbers?: readonly number[]): ClusterNode[] {
  return nodes.filter((_, place) => numbers?.includes(place + 1) ?? true);
}

import { setTimeout as sleep } from "node:timers/promises";
import { poll } from "../../src/embedded-postgres/process.ts";
import type { Seeded } from "../support/seeded.ts";
import type { ClusterNode } from "./cluster.ts";
import { untilReady } from "./failover/fixture.ts";
import { FAULTS, type Fault, type FaultName, type FaultTarget } from "./faults.ts";
import type { History } from "./history.ts";
import type { Round } from "./schedule.ts";

/** Durations of a lasting fault in milliseconds, alone and in a pair: shorter and longer than a lease. */
const SINGLE_DURATIONS = [200, 500, 1_000, 2_000, 3_000, 4_500, 8_000];
const PAIR_DURATIONS = [200, 400, 800, 1_500, 4_500];

/** Milliseconds after a fault that does not last. */
const SETTLE_TIME = 300;

/** Milliseconds without faults between two rounds, for comparison. */
const PAUSE = 500;

/** Milliseconds after which a cluster counts as not recovered, once its database accepts connections. */
const RECOVERY_TIMEOUT = 30_000;

/** Milliseconds in which the database recovers from a crash, which reads and synchronizes all of its files. */
const DATABASE_TIMEOUT = 120_000;

/** Injects the faults of a round, the second one at a random time during the first. Resolves when the cluster has recovered. */
export async function runRound(target: FaultTarget, history: History, round: Round, seeded: Seeded): Promise<void> {
  history.startPhase(round);
  const durations = round.length === 1 ? SINGLE_DURATIONS : PAIR_DURATIONS;
  const injections = round.map(async (name, place) => {
    const [own, duration] = [seeded.fork(), seeded.pick(durations)];
    await sleep(place * seeded.below(800));
    await inject(target, history, name, duration, own);
  });
  await Promise.all(injections);
  await untilAccepted(target.database);
  history.recoveries.push(await recovered(target.nodes, history, round));
  history.startPhase([]);
  await sleep(PAUSE);
}

async function inject(
  target: FaultTarget,
  { phases }: History,
  name: FaultName,
  duration: number,
  seeded: Seeded,
): Promise<void> {
  const [fault, node]: [Fault, ClusterNode] = [FAULTS[name], seeded.pick(target.nodes)];
  if (fault.isOfNode) phases.at(-1)?.victims.push(node.name);
  const end = await fault.begin(target, node, seeded);
  await sleep(end === undefined ? SETTLE_TIME : duration);
  await end?.();
}

/** Resolves when the database accepts connections. */
async function untilAccepted({ admin }: FaultTarget["database"]): Promise<void> {
  const isAccepted = () =>
    admin`SELECT 1`.then(
      () => true,
      () => undefined,
    );
  await poll(isAccepted, AbortSignal.timeout(DATABASE_TIMEOUT));
}

/** Returns the milliseconds until all nodes were ready again. */
async function recovered(nodes: readonly ClusterNode[], history: History, round: Round): Promise<number> {
  const time = await untilReady({ nodes }, RECOVERY_TIMEOUT);
  if (time === null)
    history.unexpected.push(
      `after ${round.join(" and ")} not all nodes were ready within ${RECOVERY_TIMEOUT / 1000} s`,
    );
  return time ?? RECOVERY_TIMEOUT;
}

import { setTimeout as sleep } from "node:timers/promises";
import type { Seeded } from "../support/seeded.ts";
import type { ClusterNode } from "./cluster.ts";
import { FAULTS, type Fault, type FaultName, type World } from "./faults.ts";
import type { History } from "./history.ts";
import type { Round } from "./schedule.ts";

/** Milliseconds that a fault lasts, if it lasts, when it is alone and when there are two: less and more than a lease. */
const ALONE = [200, 500, 1_000, 2_000, 3_000, 4_500, 8_000];
const TOGETHER = [200, 400, 800, 1_500, 4_500];

/** Milliseconds after a fault that does not last. */
const AFTERMATH = 300;

/** Milliseconds between two rounds, so that there is something to compare with. */
const CALM = 500;

/** Milliseconds after which a cluster has not recovered. */
const RECOVERY = 30_000;

/** Injects the faults of a round, the second one some time into the first, and resolves when the cluster has recovered. */
export async function playRound(world: World, history: History, round: Round, seeded: Seeded): Promise<void> {
  history.enter(round);
  const durations = round.length === 1 ? ALONE : TOGETHER;
  const injections = round.map(async (name, place) => {
    const [own, duration] = [seeded.fork(), seeded.pick(durations)];
    await sleep(place * seeded.below(800));
    await inject(world, history, name, duration, own);
  });
  await Promise.all(injections);
  history.recoveries.push(await recovered(world.nodes, history, round));
  history.enter([]);
  await sleep(CALM);
}

async function inject(
  world: World,
  { phases }: History,
  name: FaultName,
  duration: number,
  seeded: Seeded,
): Promise<void> {
  const [fault, node]: [Fault, ClusterNode] = [FAULTS[name], seeded.pick(world.nodes)];
  if (fault.isOfNode) phases.at(-1)?.victims.push(node.name);
  const end = await fault.begin(world, node, seeded);
  await sleep(end === undefined ? AFTERMATH : duration);
  await end?.();
}

/** Milliseconds until all nodes were ready again. */
async function recovered(nodes: readonly ClusterNode[], history: History, round: Round): Promise<number> {
  const began = performance.now();
  for (;;) {
    const ready = await Promise.all(nodes.map((node) => node.isReady()));
    const time = performance.now() - began;
    if (ready.every(Boolean)) return time;
    if (time > RECOVERY) {
      history.unexpected.push(`after ${round.join(" and ")} not all nodes were ready within ${RECOVERY / 1000} s`);
      return time;
    }
    await sleep(50);
  }
}

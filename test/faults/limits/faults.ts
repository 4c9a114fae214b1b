import { setTimeout as sleep } from "node:timers/promises";
import type { Fixture } from "../failover/fixture.ts";
import { killPrimary, promote, redirect } from "../failover/steps.ts";
import { now } from "./load.ts";
import type { Admission } from "./oracle.ts";

/** The times of faults, in order. */
export interface Faults {
  /** Nodes were killed. */
  readonly nodes: number[];
  /** PostgreSQL was killed. */
  readonly databases: number[];
  /** All of them, which may lose tokens of a quota. */
  readonly all: Admission[];
}

const HOUR = 3_600_000;

/** Injects one fault after the other until a time. */
export async function injectUntil(end: number, fixture: Fixture, faults: Faults): Promise<void> {
  while (now() < end) {
    await sleep(500 + fixture.choices.below(1_500));
    await note(faults, () => injectOne(fixture, faults));
  }
}

async function note({ all }: Faults, fault: () => Promise<void>): Promise<void> {
  const began = now();
  await fault();
  all.push({ began, ended: now() });
}

async function injectOne(fixture: Fixture, { nodes, databases }: Faults): Promise<void> {
  const { choices, primary } = fixture;
  const node = choices.pick(fixture.nodes);
  switch (choices.below(5)) {
    case 0:
      nodes.push(now());
      await node.kill();
      return node.start();
    case 1:
      node.suspend();
      await sleep(choices.pick([50, 300, 1_500, 5_000]));
      return node.resume();
    case 2:
      databases.push(now());
      await primary.kill();
      return primary.start();
    case 3:
      node.proxies.data.cut("rst");
      return;
    default:
      node.setClock((choices.below(24) - 12) * HOUR);
  }
}

export async function replacePrimary(fixture: Fixture, faults: Faults): Promise<void> {
  faults.databases.push(now());
  await note(faults, async () => {
    await killPrimary(fixture);
    await promote(fixture);
    await redirect()(fixture);
  });
}

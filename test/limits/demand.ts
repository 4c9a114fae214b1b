import type { Seeded } from "../support/seeded.ts";
import { isCrashed, type Node, type Simulation } from "./simulation.ts";

export const SHAPES = ["STEADY", "BURSTS", "SKEWED", "POISSON"] as const;

export interface DemandOptions {
  readonly shape: (typeof SHAPES)[number];
  /** Verifications per millisecond, on all nodes together. */
  readonly rate: number;
  readonly random: Seeded;
}

/** Presents verifications, for as long as virtual time goes on. */
export function demand(simulation: Simulation, { shape, rate, random }: DemandOptions): void {
  let [due, number] = [0, 0];
  const tick = () => {
    const count = Math.floor(due);
    due -= count;
    for (let left = count; left > 0; left--) simulation.present(nodeOf(simulation, shape, number++, random));
    const wait = shape === "BURSTS" ? random.below(1_000) : Math.max(1, Math.round(intervalOf(shape, random) / rate));
    due += wait * rate;
    setTimeout(tick, wait);
  };
  tick();
}

function intervalOf(shape: DemandOptions["shape"], random: Seeded): number {
  return shape === "POISSON" ? -Math.log((random.below(1_000_000) + 1) / 1_000_001) : 1;
}

/** Of skewed demand, the first node gets 97 % if there are four. */
function nodeOf({ nodes }: Simulation, shape: DemandOptions["shape"], number: number, random: Seeded): Node {
  const live = nodes.filter((node) => !isCrashed(node));
  const index = shape === "SKEWED" ? Math.max(0, random.below(100) - 97 + 1) % live.length : number % live.length;
  const node = live[index];
  if (node === undefined) throw new Error("no node is alive");
  return node;
}

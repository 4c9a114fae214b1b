import fc from "fast-check";
import { seeded } from "../support/seeded.ts";
import { demand, SHAPES } from "./demand.ts";
import {
  debtOf,
  inVirtualTime,
  isCrashed,
  lifetimeOf,
  type Mutation,
  type Simulated,
  Simulation,
} from "./simulation.ts";
import { type Fullest, fullestWindow } from "./window-bound.ts";

interface Event {
  readonly time: number;
  readonly type: "CRASH" | "JOIN" | "PAUSE" | "FORWARDS" | "BACK" | "OUTAGE";
  /** Milliseconds. */
  readonly length: number;
}

export interface Scenario extends Simulated {
  readonly shape: (typeof SHAPES)[number];
  /** Demand as a multiple of the rate, with a part of the burst. */
  readonly excess: number;
  readonly events: readonly Event[];
}

const anyLimit = fc
  .record({
    quota: fc.constantFrom(5, 60, 200),
    window: fc.constantFrom(1_000, 4_000, 60_000),
    burst: fc.constantFrom(1, 7, 40, 200, 1_000),
  })
  .map(
    (fields) => ({ name: "requests", enforcement: "ENFORCED", onDemand: false, onOutage: "DENY", ...fields }) as const,
  );

const event: fc.Arbitrary<Event> = fc.record({
  time: fc.nat(8_000),
  type: fc.constantFrom("CRASH", "JOIN", "PAUSE", "FORWARDS", "BACK", "OUTAGE"),
  length: fc.constantFrom(10, 300, 1_500),
});

/** Faults and demand at random. */
export const scenario: fc.Arbitrary<Scenario> = fc.record({
  seed: fc.nat(),
  nodes: fc.constantFrom(1, 2, 3, 4, 8, 16),
  limit: anyLimit,
  delay: fc.constantFrom(0, 3, 40, 600),
  failures: fc.constantFrom(0, 0, 5, 30),
  shape: fc.constantFrom(...SHAPES),
  excess: fc.constantFrom(0.9, 1.5, 5),
  events: fc.array(event, { maxLength: 6 }),
});

const RUN = 10_000;

/** Returns the fullest window of ten seconds. */
export async function run(options: Scenario, mutation?: Mutation): Promise<Fullest> {
  const simulation = await inVirtualTime(RUN, () => {
    const started = new Simulation(options, mutation);
    const { quota, window, burst } = options.limit;
    const rate = Math.max(options.excess * (quota / window + burst / RUN), 0.001);
    demand(started, { shape: options.shape, rate, random: seeded(options.seed) });
    for (const one of options.events) setTimeout(() => apply(started, one), one.time);
    return started;
  });
  return fullestWindow(simulation.admitted, boundOf(simulation, options.nodes));
}

function apply(simulation: Simulation, { type, length }: Event): void {
  const live = simulation.nodes.filter((node) => !isCrashed(node));
  const node = live[length % live.length];
  if (node === undefined) return;
  if (type === "CRASH" && live.length > 1) simulation.crash(node);
  if (type === "JOIN") simulation.join();
  if (type === "PAUSE") simulation.pause(node, length);
  if (type === "FORWARDS") simulation.stepClock(length);
  if (type === "BACK") simulation.stepClock(-1_000 * length);
  if (type === "OUTAGE") simulation.stopDatabase(length);
}

function boundOf({ limit: of, allowances, nodes }: Simulation, initial: number) {
  const rate = of.quota / of.window;
  const debt = nodes.length === initial ? 2 * initial * debtOf(of, initial) : of.burst / 20;
  return { fixed: of.burst + rate * lifetimeOf(of) + debt, rate, allowances };
}

import type { Seeded } from "../support/seeded.ts";
import type { FaultName } from "./faults.ts";

/** Faults that are injected together. */
export type Round = readonly FaultName[];

/** Yields every fault alone and then every pair, in random order, repeatedly. */
export function* schedule(names: readonly FaultName[], seeded: Seeded): Generator<Round, never> {
  const pairs = names.flatMap((one, place) => names.slice(place + 1).map((other): Round => [one, other]));
  for (;;) {
    yield* seeded.shuffled(names.map((name): Round => [name]));
    yield* seeded.shuffled(pairs);
  }
}

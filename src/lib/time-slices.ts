import { setImmediate as nextTurn } from "node:timers/promises";
import { type Monotonic, systemMonotonic } from "./monotonic.ts";

/** Milliseconds of work in one turn of the event loop. */
const SLICE = 20;

/** Maps many items in as many turns of the event loop as it takes, so that other calls are served in between. */
export async function mapInSlices<T, R>(
  items: readonly T[],
  map: (item: T) => R,
  now: Monotonic = systemMonotonic,
): Promise<R[]> {
  const mapped: R[] = [];
  let begin = now();
  for (const item of items) {
    mapped.push(map(item));
    if (now() - begin < SLICE) continue;
    await nextTurn();
    begin = now();
  }
  return mapped;
}

/** Takes step after step while there are more, by what each returns, in as many turns of the event loop as it takes. */
export async function repeatInSlices(step: () => boolean, now: Monotonic = systemMonotonic): Promise<void> {
  let begin = now();
  while (step()) {
    if (now() - begin < SLICE) continue;
    await nextTurn();
    begin = now();
  }
}

import { setImmediate as nextTick } from "node:timers/promises";
import { systemMonotonic } from "./clock.ts";

/** Milliseconds of work per tick of the event loop, unless a caller says otherwise. */
const SLICE = 5;

/** Maps items over as many ticks of the event loop as needed, so that other calls are served in between. `slice`: milliseconds of each. */
export async function mapInSlices<T, R>(items: readonly T[], map: (item: T) => R, slice = SLICE): Promise<R[]> {
  const mapped: R[] = [];
  let started = systemMonotonic();
  for (const item of items) {
    mapped.push(map(item));
    if (systemMonotonic() - started < slice) continue;
    await nextTick();
    started = systemMonotonic();
  }
  return mapped;
}

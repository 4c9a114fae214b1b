import { setFlagsFromString } from "node:v8";

/** Percent of what was alive at the last full collection. */
const GROWTH = 50;

/**
 * Bounds what the heap may grow by before V8 collects it as a whole. V8 itself lets a small heap grow fourfold, and keeps it so
 * when the work is over. Ours is small, since the cache stands outside it, and a full collection takes some milliseconds.
 */
export function boundHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH}`);
}

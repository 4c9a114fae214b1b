import { setFlagsFromString } from "node:v8";

/** Percent of what was alive at the last full collection. */
const GROWTH = 100;

/**
 * Bounds what the heap may grow by before V8 collects it as a whole. V8 itself lets a small heap grow fourfold, and keeps it so
 * when the work is over. Ours is small, since the cache stands outside it, and a full collection takes some milliseconds.
 */
export function boundHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH}`);
}

/**
 * Keeps the young generation from doubling. What a program reads as it starts is there to stay, and the room that it would take on
 * its way to the old generation stays too: a tenth of the memory of a server with nothing to do.
 */
export function holdYoungGeneration(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
}

/** V8's own way again: under load, a larger one saves much of the work. */
export function releaseYoungGeneration(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
}

import { setFlagsFromString } from "node:v8";

/**
 * Limits heap growth between full collections, in percent of the live heap after the last one. By default V8 lets a small heap grow fourfold
 * and does not shrink it afterwards. This heap is small, since the cache is outside it, and a full collection takes milliseconds.
 */
export function boundHeapGrowth(): void {
  setFlagsFromString("--heap-growing-percent=100");
}

/**
 * Keeps the young generation from growing during startup. What startup allocates is long-lived, and a grown young generation stays: a tenth
 * of the memory of an idle server.
 */
export function holdYoungGeneration(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
}

/** Restores V8's default: under load, a larger young generation saves collections. */
export function releaseYoungGeneration(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
}

import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { systemMonotonic } from "../lib/clock.ts";

/** The caller's side of a call that changes many keys. */
export interface WorkControl {
  /** Whether to begin another slice. */
  mayContinue(): boolean;
  /** Receives the ids of keys when their change is propagated; those of an unconfirmed change are in the error instead. */
  onChanged(keyIds: readonly string[]): void;
}

/** Milliseconds that a call works, well below the 10 s after which the TypeScript client gives up. */
const WORK_TIME = 5_000;

/** Slices whose keys one search finds: at both paces about what a call changes within its time. Its rows use the event loop, too. */
export const SLICES_PER_SEARCH = 40;

/** Milliseconds: enough to measure the utilization. */
const MIN_PAUSE = 4;

/** Utilization of the event loop by other work above which a process is busy. */
const BUSY = 0.5;

/**
 * Returns the keys per transaction, and the pause after it as a multiple of what it took, at a utilization of the event loop by other work
 * from 0 to 1. Other changes of a key wait for its transaction, and verifications for the event loop that reads its rows: in a busy process
 * almost all of the time belongs to other callers.
 */
export function paceAt(utilization: number) {
  return utilization > BUSY ? { slice: 10, pause: 12 } : { slice: 500, pause: 0.1 };
}

/**
 * Returns a function that repeats a step until it returns true, `mayContinue` returns false, or the time since this call is up. It returns
 * whether the step has returned true. A step receives the number of keys to change.
 */
export function startWork({
  mayContinue,
}: WorkControl): (step: (slice: number) => Promise<boolean>) => Promise<boolean> {
  const deadline = systemMonotonic() + WORK_TIME;
  return async (step) => {
    let [pause, utilization] = [MIN_PAUSE, undefined as number | undefined];
    for (;;) {
      // During a pause, and so before the first slice, only other work uses the event loop. The average, because a pause is short.
      const before = performance.eventLoopUtilization();
      await sleep(pause);
      const measured = performance.eventLoopUtilization(before).utilization;
      utilization = ((utilization ?? measured) + measured) / 2;
      const pace = paceAt(utilization);
      const started = systemMonotonic();
      if (await step(pace.slice)) return true;
      const now = systemMonotonic();
      if (!mayContinue() || now > deadline) return false;
      pause = Math.min(Math.max((now - started) * pace.pause, MIN_PAUSE), deadline - now);
    }
  };
}

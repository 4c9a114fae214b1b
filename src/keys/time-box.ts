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

/** Keys per transaction. Other changes of a key wait for that long, and verifications for the event loop that reads its rows. */
export const SLICE = 25;

/** Pause after each slice, as a multiple of what it took: the rest of the time belongs to other callers. */
const PAUSE_RATIO = 2;

/**
 * Returns a function that repeats a step until it returns true, `mayContinue` returns false, or the time since this call is up. It returns
 * whether the step has returned true.
 */
export function startWork({ mayContinue }: WorkControl): (step: () => Promise<boolean>) => Promise<boolean> {
  const deadline = systemMonotonic() + WORK_TIME;
  return async (step) => {
    for (;;) {
      const started = systemMonotonic();
      if (await step()) return true;
      if (!mayContinue() || systemMonotonic() > deadline) return false;
      await sleep((systemMonotonic() - started) * PAUSE_RATIO);
    }
  };
}

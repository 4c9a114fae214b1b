/** Wall-clock time: milliseconds since the Unix epoch. Injected, so that tests control it; only this file reads the system clock. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** A monotonic clock in milliseconds from an arbitrary origin, for durations. */
export type Monotonic = () => number;

export const systemMonotonic: Monotonic = () => performance.now();

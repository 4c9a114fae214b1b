/** The time, as it comes in from outside: milliseconds since the Unix epoch. Below the wiring nothing else tells the time. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

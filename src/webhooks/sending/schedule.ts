import type { AttemptOutcome } from "./sender.ts";

const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];

/** The time from one attempt to the next (Standard Webhooks, "Deliverability and reliability"): the tenth attempt is the last. */
const DELAYS = [
  ...[5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR],
  ...[10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR],
];

/** The most that a delay is extended, so that attempts that failed together are not repeated together. */
const JITTER = 0.1;

/** Gone (RFC 9110 §15.5.11): the receiver wants no more requests. */
const GONE = 410;

export type NextStep =
  | { readonly next: "succeeded" }
  /** `delay` is in milliseconds. */
  | { readonly next: "retry"; readonly delay: number }
  | { readonly next: "failed" }
  | { readonly next: "gone" };

/**
 * Returns what follows an attempt. `attempts`: how many were made, this one included. `random` returns a number from 0 to 1. A receiver can
 * extend a delay with `Retry-After`, but not shorten it.
 */
export function afterAttempt(attempts: number, outcome: AttemptOutcome, random: () => number): NextStep {
  if (outcome.error === null) return { next: "succeeded" };
  if (outcome.status === GONE) return { next: "gone" };
  const delay = DELAYS[attempts - 1];
  if (delay === undefined) return { next: "failed" };
  return { next: "retry", delay: Math.max(delay, outcome.retryAfter ?? 0) * (1 + JITTER * random()) };
}

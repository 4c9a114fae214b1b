/** In milliseconds: the longest delay of the schedule. */
const MAX_RETRY_AFTER = 86_400_000;

/**
 * Returns the milliseconds that `Retry-After` (RFC 9110 §10.2.3) asks to wait, at most 24 h: a number of seconds or a date. Null if there is
 * none. `now`: milliseconds since the Unix epoch.
 */
export function parseRetryAfter(value: string | undefined, now: number): number | null {
  if (value === undefined) return null;
  const delay = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
  return Number.isNaN(delay) ? null : Math.min(Math.max(delay, 0), MAX_RETRY_AFTER);
}

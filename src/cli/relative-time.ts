const UNITS = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
] as const;

/**
 * Returns an RFC 3339 time relative to `now`, Unix time in milliseconds.
 *
 * @example relativeTime("2030-01-04T00:00:00Z", Date.parse("2030-01-01T00:00:00Z")); // "in 3 days"
 */
export function relativeTime(time: string, now: number): string {
  const seconds = (Date.parse(time) - now) / 1000;
  const [unit, size] = UNITS.find(([, least]) => Math.abs(seconds) >= least) ?? (["second", 1] as const);
  return new Intl.RelativeTimeFormat("en").format(Math.round(seconds / size), unit);
}

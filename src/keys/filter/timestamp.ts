const TIMESTAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i;
const MINUTE = 60_000;

/**
 * An RFC 3339 §5.6 date-time of the years 1 to 9999 (the range of google.protobuf.Timestamp), in UTC and with six digits of
 * fraction: `2026-01-31T12:00:00.000000Z`. Times are kept in microseconds; finer digits are cut off. Undefined for any other
 * text, a day that its month does not have, or a leap second.
 */
export function parseTimestamp(text: string): string | undefined {
  const match = TIMESTAMP.exec(text);
  if (match === null) return undefined;
  const [, seconds = "", fraction = "", sign = "+", hours = "0", minutes = "0"] = match;
  const local = parseSeconds(seconds.toUpperCase());
  if (local === undefined) return undefined;
  const offset = Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) * MINUTE;
  const utc = new Date(local - offset).toISOString();
  return /^(?!0000)\d{4}-/.test(utc) ? `${utc.slice(0, 19)}.${fraction.padEnd(6, "0").slice(0, 6)}Z` : undefined;
}

/** Milliseconds of a date and time that exist. `Date` takes 30 February for 2 March, which then prints differently. */
function parseSeconds(text: string): number | undefined {
  const date = new Date(`${text}Z`);
  if (Number.isNaN(date.getTime()) || date.toISOString().slice(0, 19) !== text) return undefined;
  return date.getTime();
}

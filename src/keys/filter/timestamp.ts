const TIMESTAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i;
const MINUTE = 60_000;

/**
 * Parses an RFC 3339 date-time (§5.6) of the years 1 to 9999 (the range of google.protobuf.Timestamp). Returns it in UTC with six digits of
 * fraction, such as `2026-01-31T12:00:00.000000Z`; finer digits are truncated. Returns undefined for any other text, a date that does not
 * exist, or a leap second.
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

/** Returns milliseconds; undefined if the date does not exist, which `Date` would normalize. */
function parseSeconds(text: string): number | undefined {
  const date = new Date(`${text}Z`);
  if (Number.isNaN(date.getTime()) || date.toISOString().slice(0, 19) !== text) return undefined;
  return date.getTime();
}

import { parseDateTime } from "../lib/date-time.ts";

/** The number of digits that google.protobuf.Timestamp has. */
const MAX_FRACTION = 9;

/**
 * Parses an RFC 3339 date-time (§5.6) of the years 1 to 9999 (the range of google.protobuf.Timestamp). Returns it in UTC with six digits of
 * fraction, such as `2026-01-31T12:00:00.000000Z`; finer digits are truncated. Returns undefined for any other text, a date that does not
 * exist, or a leap second.
 */
export function parseTimestamp(text: string): string | undefined {
  const parsed = parseDateTime(text);
  if (parsed === undefined || parsed.fraction.length > MAX_FRACTION) return undefined;
  const utc = new Date(parsed.second).toISOString();
  return /^(?!0000)\d{4}-/.test(utc) ? `${utc.slice(0, 19)}.${parsed.fraction.padEnd(6, "0").slice(0, 6)}Z` : undefined;
}

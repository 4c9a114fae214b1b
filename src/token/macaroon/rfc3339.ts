import { parseDateTime } from "../../lib/date-time.ts";

/** Formats RFC 3339 in UTC, with milliseconds only if not zero. Throws `RangeError` outside the years 0 to 9999. */
export function formatRfc3339(time: number): string {
  const text = new Date(time).toISOString();
  if (text.length !== 24) throw new RangeError("RFC 3339 years must have four digits");
  return text.replace(".000Z", "Z");
}

/**
 * Parses an RFC 3339 date-time (§5.6) and returns milliseconds since the epoch, or undefined. Digits beyond milliseconds are truncated, which
 * moves a limit earlier, never later. A leap second (`:60`) is rejected.
 */
export function parseRfc3339(text: string): number | undefined {
  const parsed = parseDateTime(text);
  return parsed && parsed.second + Number(parsed.fraction.slice(0, 3).padEnd(3, "0"));
}

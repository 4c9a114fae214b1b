import { type DurationBounds, parseDuration, TTL_BOUNDS } from "../domain/duration.ts";
import type { Cursor } from "./cursor.ts";
import { type Literal, plainText, takeValue } from "./literal.ts";

const NOW = /now\([ \t\r\n]*\)/y;
/** A minus that no duration follows negates the next comparison. */
const SIGN = /[ \t\r\n]*(?:\+|-(?=[ \t\r\n]*["'\d]))/y;
const OFFSET_BOUNDS: DurationBounds = { min: 0, max: TTL_BOUNDS.max };

/**
 * Parses `now()`, or `now()` plus or minus a duration, and returns the literal of that time; null if there is none. AIP-160 leaves the
 * functions to the service; the addition is that of CEL.
 */
export function takeRelativeTime(cursor: Cursor, now: () => number): Literal | null {
  const { offset } = cursor;
  if (cursor.take(NOW) === "") return null;
  const sign = cursor.take(SIGN);
  const time = sign === "" ? now() : now() + (sign.endsWith("-") ? -1 : 1) * takeDuration(cursor);
  return { offset, quoted: true, parts: [new Date(time).toISOString()] };
}

/** Returns milliseconds. */
function takeDuration(cursor: Cursor): number {
  cursor.skipSpace();
  const { offset } = cursor;
  const value = takeValue(cursor);
  try {
    return parseDuration((value && plainText(value)) ?? "", "filter", OFFSET_BOUNDS);
  } catch {
    throw cursor.error("invalid value", 'expected a duration such as "30d", at most 3650d', offset);
  }
}

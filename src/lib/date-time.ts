const DATE_TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i;
const MINUTE = 60_000;

/**
 * Parses an RFC 3339 date-time (§5.6). Returns undefined for any other text, a date that does not exist, or a leap second (`:60`), which has
 * no value in this scale. `second` is in milliseconds since the epoch; `fraction` has the digits after it, as written. In UTC, the year may be
 * outside 0 to 9999.
 */
export function parseDateTime(text: string) {
  const match = DATE_TIME.exec(text);
  if (match === null) return undefined;
  const [, written = "", fraction = "", sign = "+", hours = "0", minutes = "0"] = match;
  const local = parseLocal(written.toUpperCase());
  if (local === undefined) return undefined;
  const offset = (Number(hours) * 60 + Number(minutes)) * MINUTE;
  return { second: sign === "-" ? local + offset : local - offset, fraction };
}

/** Returns milliseconds; undefined if the date does not exist, such as 30 February, which `Date` normalizes to March. */
function parseLocal(text: string): number | undefined {
  const date = new Date(`${text}Z`);
  if (Number.isNaN(date.getTime()) || date.toISOString().slice(0, 19) !== text) return undefined;
  return date.getTime();
}

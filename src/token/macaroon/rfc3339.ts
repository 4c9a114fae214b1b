const RFC_3339 = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/;

/** Formats RFC 3339 in UTC, with milliseconds only if not zero. Throws `RangeError` outside the years 0 to 9999. */
export function formatRfc3339(time: number): string {
  const text = new Date(time).toISOString();
  if (text.length !== 24) throw new RangeError("RFC 3339 years must have four digits");
  return text.replace(".000Z", "Z");
}

/**
 * Parses an RFC 3339 date-time (§5.6) and returns milliseconds since the epoch, or undefined. Digits beyond milliseconds are truncated, which
 * moves a limit earlier, never later. A leap second (`:60`) has no value in this scale and is rejected.
 */
export function parseRfc3339(text: string): number | undefined {
  const match = RFC_3339.exec(text);
  if (match === null) return undefined;
  const [, date, clock, fraction = "", sign, hours, minutes] = match;
  const local = `${date}T${clock}.${fraction.slice(0, 3).padEnd(3, "0")}Z`;
  const time = Date.parse(local);
  // `Date` normalizes 30 February to March: a date exists only if it formats back to itself.
  if (Number.isNaN(time) || new Date(time).toISOString() !== local) return undefined;
  const offset = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000;
  return sign === "-" ? time + offset : time - offset;
}

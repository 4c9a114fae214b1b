import { invalidArgument } from "./errors.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Milliseconds per unit. A month is 30 days and a year 365 days. */
const UNITS = new Map([
  ["s", SECOND],
  ["m", MINUTE],
  ["h", HOUR],
  ["d", DAY],
  ["w", 7 * DAY],
  ["mo", 30 * DAY],
  ["y", 365 * DAY],
]);

/** Inclusive bounds in milliseconds. */
export interface DurationBounds {
  readonly min: number;
  readonly max: number;
}

/** The lifetime of a key or token: 1 s to 10 y. */
export const TTL_BOUNDS: DurationBounds = { min: SECOND, max: 3650 * DAY };

/** How long a rotated secret remains valid: 1 s to 30 d. */
export const GRACE_PERIOD_BOUNDS: DurationBounds = { min: SECOND, max: 30 * DAY };

const MAX_LENGTH = 64;
const SYNTAX =
  'must be a duration such as "90d" or "1h30m", with the units s (seconds), m (minutes), h, d, w, mo (30 days) and y (365 days)';

const DURATION = /^(?:\d+(?:\.\d+)?[a-z]+)+$/;
const TERM = /(\d+)(?:\.(\d+))?([a-z]+)/g;

/**
 * Parses a duration and returns milliseconds. The text is one or more `<number><unit>` with the units `s m h d w mo y`, in any order, each at
 * most once. The arithmetic is exact: a value that is not a whole number of milliseconds is rejected. A sign, a space, an exponent or a
 * number without a unit is rejected.
 *
 * @example parseDuration("1h30m", "ttl") // 5_400_000
 * @throws `INVALID_ARGUMENT` naming `field`.
 */
export function parseDuration(text: string, field: string, bounds: DurationBounds = TTL_BOUNDS): number {
  if (text.length > MAX_LENGTH)
    throw invalidArgument(field, `must have at most ${MAX_LENGTH} characters`, "STRING_TOO_LONG");
  const terms = DURATION.test(text) ? [...text.matchAll(TERM)] : [];
  const units = terms.map(([, , , unit = ""]) => unit);
  if (units.length === 0 || !units.every((unit) => UNITS.has(unit)))
    throw invalidArgument(field, SYNTAX + hintFor(text));
  const repeated = units.find((unit, index) => units.indexOf(unit) < index);
  if (repeated !== undefined) throw invalidArgument(field, `must not use the unit "${repeated}" more than once`);
  const total = terms.reduce((sum, term) => sum + toMilliseconds(term, field), 0n);
  if (total < bounds.min || total > bounds.max) {
    const range = `from ${boundText(bounds.min)} to ${boundText(bounds.max)}`;
    throw invalidArgument(field, `must be a duration ${range}`, "OUT_OF_RANGE");
  }
  return Number(total);
}

function hintFor(text: string): string {
  if (/^[+-]?P/i.test(text)) return "; an ISO 8601 duration such as P90D is not accepted: write 90d";
  return text === text.toLowerCase() ? "" : "; units must be in lower case";
}

/** Formats a bound in days, minutes or seconds. */
function boundText(milliseconds: number): string {
  const units = [
    ["d", DAY],
    ["m", MINUTE],
  ] as const;
  const [unit, size] = units.find(([, size]) => milliseconds > 0 && milliseconds % size === 0) ?? ["s", SECOND];
  return `${milliseconds / size}${unit}`;
}

/** A number without its decimal point is an integer in units of its last digit: `1.5` is 15 tenths. */
function toMilliseconds([, whole = "", fraction = "", unit = ""]: readonly string[], field: string): bigint {
  const scaled = BigInt(whole + fraction) * BigInt(UNITS.get(unit) ?? 0);
  const scale = 10n ** BigInt(fraction.length);
  if (scaled % scale !== 0n) throw invalidArgument(field, "must be a whole number of milliseconds");
  return scaled / scale;
}

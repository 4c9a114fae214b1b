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

/** The whole units that `formatDuration` prints. Weeks, months and years are left out: readers disagree on their length. */
const PRINTED_UNITS = [
  ["d", DAY],
  ["h", HOUR],
  ["m", MINUTE],
] as const;

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
const SYNTAX = 'must be a duration such as "24h" or "1h30m", with the units s m h d w mo y';

interface Term {
  /** The number without its decimal point: `1.5` is 15 with one decimal. */
  readonly digits: bigint;
  readonly decimals: number;
  readonly unit: string;
  readonly unitMilliseconds: bigint;
}

/**
 * Parses a duration and returns milliseconds. The text is one or more `<number><unit>` with the units `s m h d w mo y`, in any order, each at
 * most once. The arithmetic is exact: a value that is not a whole number of milliseconds is rejected. A sign, a space, an exponent or a
 * number without a unit is rejected.
 *
 * @example parseDuration("1h30m", "ttl") // 5_400_000
 * @throws `INVALID_ARGUMENT` naming `field`.
 */
export function parseDuration(text: string, field: string, bounds: DurationBounds = TTL_BOUNDS): number {
  if (text.length > MAX_LENGTH) throw invalidArgument(field, `must have at most ${MAX_LENGTH} characters`);
  const terms = parseTerms(text, field);
  rejectRepeatedUnits(terms, field);
  const total = terms.reduce((sum, term) => sum + termMilliseconds(term, field), 0n);
  if (total < bounds.min || total > bounds.max) {
    const range = `from ${formatDuration(bounds.min)} to ${formatDuration(bounds.max)}`;
    throw invalidArgument(field, `must be a duration ${range}`);
  }
  return Number(total);
}

/**
 * Formats milliseconds as the canonical duration, such as `1d2h3m4.5s`: days and smaller units without zero terms; `0s` for zero.
 * `parseDuration` is the inverse.
 *
 * @throws `RangeError` unless `milliseconds` is a whole number from 0.
 */
export function formatDuration(milliseconds: number): string {
  if (!Number.isSafeInteger(milliseconds) || milliseconds < 0)
    throw new RangeError("not a whole number of milliseconds");
  let text = "";
  let rest = milliseconds;
  for (const [unit, size] of PRINTED_UNITS) {
    if (rest >= size) text += `${Math.floor(rest / size)}${unit}`;
    rest %= size;
  }
  // Below a minute the quotient has at most three decimals and no exponent.
  return rest > 0 || text === "" ? `${text}${rest / SECOND}s` : text;
}

function parseTerms(text: string, field: string): readonly Term[] {
  const pattern = /(\d+)(?:\.(\d+))?([a-z]+)/y;
  const terms: Term[] = [];
  do {
    const [, whole, fraction = "", unit = ""] = pattern.exec(text) ?? [];
    const size = UNITS.get(unit);
    if (whole === undefined || size === undefined) throw invalidArgument(field, SYNTAX);
    terms.push({ digits: BigInt(whole + fraction), decimals: fraction.length, unit, unitMilliseconds: BigInt(size) });
  } while (pattern.lastIndex < text.length);
  return terms;
}

function rejectRepeatedUnits(terms: readonly Term[], field: string): void {
  const seen = new Set<string>();
  for (const { unit } of terms) {
    if (seen.has(unit)) throw invalidArgument(field, `must have the unit "${unit}" only once`);
    seen.add(unit);
  }
}

function termMilliseconds({ digits, decimals, unitMilliseconds }: Term, field: string): bigint {
  const scale = 10n ** BigInt(decimals);
  const scaled = digits * unitMilliseconds;
  if (scaled % scale !== 0n) throw invalidArgument(field, "must be a whole number of milliseconds");
  return scaled / scale;
}

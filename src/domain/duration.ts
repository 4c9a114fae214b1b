import { invalidArgument } from "./errors.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Milliseconds of each unit. A month is 30 days and a year 365: a duration has no calendar. */
const UNITS = new Map([
  ["s", SECOND],
  ["m", MINUTE],
  ["h", HOUR],
  ["d", DAY],
  ["w", 7 * DAY],
  ["mo", 30 * DAY],
  ["y", 365 * DAY],
]);

/** The whole units in which a duration is printed: those that every reader takes for the same length. */
const PRINTED_UNITS = [
  ["d", DAY],
  ["h", HOUR],
  ["m", MINUTE],
] as const;

/** Both in milliseconds and both allowed. */
export interface DurationBounds {
  readonly min: number;
  readonly max: number;
}

/** The life of a key or token: from 1 s to 10 y. */
export const TTL_BOUNDS: DurationBounds = { min: SECOND, max: 3650 * DAY };

/** How long a secret that was rotated away still works: from 1 s to 30 d. */
export const GRACE_PERIOD_BOUNDS: DurationBounds = { min: SECOND, max: 30 * DAY };

const MAX_LENGTH = 64;
const SYNTAX = 'must be a duration such as "24h" or "1h30m", with the units s m h d w mo y';

interface Term {
  /** The number without its point: `1.5` is 15 with one decimal. */
  readonly digits: bigint;
  readonly decimals: number;
  readonly unit: string;
  readonly unitMilliseconds: bigint;
}

/**
 * A duration in milliseconds from its text: one or more `<number><unit>` with the units `s m h d w mo y`, such as `24h`,
 * `1h30m`, `1.5h`, `90d`. The units may come in any order but each only once, since a repeated one is a slip. The arithmetic
 * is exact: what is no whole number of milliseconds is refused, never rounded. No sign, space, exponent or bare number.
 * Throws `INVALID_ARGUMENT` naming `field`.
 */
export function parseDuration(text: string, field: string, bounds: DurationBounds = TTL_BOUNDS): number {
  if (text.length > MAX_LENGTH) throw invalidArgument(field, `must have at most ${MAX_LENGTH} characters`);
  const terms = parseTerms(text, field);
  refuseRepeatedUnits(terms, field);
  const total = terms.reduce((sum, term) => sum + termMilliseconds(term, field), 0n);
  if (total < bounds.min || total > bounds.max) {
    const range = `from ${formatDuration(bounds.min)} to ${formatDuration(bounds.max)}`;
    throw invalidArgument(field, `must be a duration ${range}`);
  }
  return Number(total);
}

/**
 * The canonical text of a duration in whole milliseconds from 0: `1d2h3m4.5s`, in days and smaller units, without those
 * that are zero (but `0s`). `parseDuration` reads it back. Throws `RangeError` on any other number.
 */
export function formatDuration(milliseconds: number): string {
  if (!Number.isSafeInteger(milliseconds) || milliseconds < 0) throw new RangeError("no whole number of milliseconds");
  let text = "";
  let rest = milliseconds;
  for (const [unit, size] of PRINTED_UNITS) {
    if (rest >= size) text += `${Math.floor(rest / size)}${unit}`;
    rest %= size;
  }
  // Below a minute the quotient prints with at most three decimals and never with an exponent.
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

function refuseRepeatedUnits(terms: readonly Term[], field: string): void {
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

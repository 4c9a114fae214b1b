import type { Language } from "../texts/catalogue.ts";

export interface Lifetime {
  /** As in `ttl` of a request. Empty: the default of the server. */
  readonly ttl: string;
  readonly label: string;
}

const DAY = 86_400;

const UNITS = [
  [DAY, "day"],
  [3_600, "hour"],
  [60, "minute"],
] as const;

/** Returns a number of seconds in a language, such as `90 days`. */
export function durationText(seconds: number, language: Language): string {
  const [length, unit] = UNITS.find(([length]) => seconds >= length && seconds % length === 0) ?? [1, "second"];
  return new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "long" }).format(seconds / length);
}

/** Days that are offered. */
const OFFERED = [1, 7, 30, 90, 365];

/** Returns the seconds of a duration in the form of the API, such as `7776000s`; null for none. */
export function secondsOf(duration: string | undefined): number | null {
  return duration === undefined ? null : Number.parseFloat(duration);
}

/** Returns the lifetimes that a new key may have, the shortest first. `max`: seconds; null: there is no limit. */
export function lifetimesOf(max: number | null, language: Language): readonly Lifetime[] {
  const offered = OFFERED.map((days) => days * DAY).filter((seconds) => max === null || seconds <= max);
  const all = max === null || offered.includes(max) ? offered : [...offered, max];
  return all.map((seconds) => ({ ttl: `${seconds}s`, label: durationText(seconds, language) }));
}

/** Returns the one that is chosen at first: 90 days, or else the longest. */
export function defaultTtl(lifetimes: readonly Lifetime[]): string {
  const usual = `${90 * DAY}s`;
  return lifetimes.find(({ ttl }) => ttl === usual)?.ttl ?? lifetimes.at(-1)?.ttl ?? "";
}

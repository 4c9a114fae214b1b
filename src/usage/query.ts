import type { KeyKind } from "../domain/key.ts";
import type { Restrictions } from "../domain/principal.ts";

/** What counts are grouped by. */
export const DIMENSIONS = ["key", "actor", "outcome", "limit"] as const;

export type Dimension = (typeof DIMENSIONS)[number];

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

/** The length of the periods that counts are added up for. */
export const STEPS: ReadonlyMap<string, number> = new Map([
  ["1h", HOUR],
  ["1d", DAY],
]);

/** Which verifications to count, or which units of limits to add up, and how to group them. */
export interface UsageQuery {
  /** Undefined: any. */
  readonly keyId?: string | undefined;
  readonly actorId?: string | undefined;
  readonly kind?: KeyKind | undefined;
  readonly outcome?: string | undefined;
  /** The name of a limit, whose units are added up. */
  readonly limit?: string | undefined;
  /** On an hour; on a day with a step of a day. */
  readonly startTime: Date;
  /** Exclusive. */
  readonly endTime: Date;
  readonly groupBy: readonly Dimension[];
  /** Milliseconds; null: one count for the whole time. */
  readonly step: number | null;
}

interface UnitsQuery {
  /** Undefined or empty: any. */
  readonly limit?: string | undefined;
  readonly groupBy: readonly string[];
}

/** Returns whether a query adds up units of limits, and does not count verifications. */
export function isOfUnits({ limit, groupBy }: UnitsQuery): boolean {
  return Boolean(limit) || groupBy.includes("limit");
}

/** One page of the counts of a query. */
export interface UsagePage {
  /** Rows of the pages before. */
  readonly offset: number;
  readonly limit: number;
}

/** How often keys were verified, or what that has cost by limits. The fields by which nothing is grouped are null. */
export interface UsageCount {
  /** The beginning of the step. */
  readonly time: Date | null;
  readonly keyId: string | null;
  /** Null for a key that is deleted. */
  readonly actorId: string | null;
  readonly outcome: string | null;
  readonly limit: string | null;
  /** Verifications, or units. */
  readonly count: number;
}

export interface UsageReader {
  /** Returns counts by time, then the highest first. A restricted caller sees those of keys of its actors. */
  query(query: UsageQuery, page: UsagePage, restrictions: Restrictions): Promise<UsageCount[]>;
}

/** Extends a period to whole steps. */
export function alignPeriod(startTime: Date, endTime: Date, step: number): { startTime: Date; endTime: Date } {
  return {
    startTime: new Date(Math.floor(startTime.getTime() / step) * step),
    endTime: new Date(Math.ceil(endTime.getTime() / step) * step),
  };
}

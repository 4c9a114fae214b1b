import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";

const HOUR = 3_600_000;
const STEPS = { "1h": HOUR, "1d": 24 * HOUR } as const;

/** The periods that can be chosen: how many steps they have. */
const PERIODS = {
  "24h": { step: "1h", count: 24 },
  "7d": { step: "1d", count: 7 },
  "30d": { step: "1d", count: 30 },
  "90d": { step: "1d", count: 90 },
} as const;

export type Period = keyof typeof PERIODS;

export const PERIOD_NAMES = ["24h", "7d", "30d", "90d"] as const satisfies readonly Period[];

export interface PeriodSteps {
  readonly step: keyof typeof STEPS;
  /** Begin of the period: the same for a whole step, so that a query with it can be cached. */
  readonly startTime: Timestamp;
  /** The begin of each step, in milliseconds. */
  readonly times: readonly number[];
}

/** Returns the steps of a period that ends now. */
export function stepsOf(period: Period): PeriodSteps {
  const { step, count } = PERIODS[period];
  const length = STEPS[step];
  const last = Math.floor(Date.now() / length) * length;
  const times = Array.from({ length: count }, (_, index) => last - (count - 1 - index) * length);
  return { step, times, startTime: timestampFromMs(last - (count - 1) * length) };
}

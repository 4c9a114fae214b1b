/** The distribution of several rounds of one measurement. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly samples: readonly number[];
}

/** How the figure is computed from subject and baseline. */
export type FigureKind = "ratio" | "difference" | "value";

/** Returns the median. Throws `RangeError` for no samples. */
export function median(samples: readonly number[]): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  if (low === undefined || high === undefined) throw new RangeError("no samples");
  return (low + high) / 2;
}

export function spread(samples: readonly number[]): Spread {
  return { median: median(samples), min: Math.min(...samples), max: Math.max(...samples), samples };
}

/**
 * Returns the figure of a scenario. A ratio is the median of the ratios of each round, which cancels slow changes of the machine's speed.
 * A difference is the difference of the medians.
 */
export function figureOf(by: FigureKind, subject: Spread, baseline: Spread | null): number {
  if (by === "value") return subject.median;
  if (baseline === null) throw new RangeError(`a ${by} needs a baseline`);
  if (by === "difference") return subject.median - baseline.median;
  const { samples } = baseline;
  if (samples.length !== subject.samples.length) return subject.median / baseline.median;
  return median(subject.samples.map((figure, round) => figure / (samples[round] ?? Number.NaN)));
}

/** A bound on the figure, inclusive. */
export interface Bound {
  readonly at_least?: number;
  readonly at_most?: number;
}

export function isWithin(figure: number, { at_least, at_most }: Bound): boolean {
  return figure >= (at_least ?? Number.NEGATIVE_INFINITY) && figure <= (at_most ?? Number.POSITIVE_INFINITY);
}

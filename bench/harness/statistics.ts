/** What several rounds of one measurement came to. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly samples: readonly number[];
}

/** How a subject and its baseline become the one figure that is judged. */
export type Judgement = "ratio" | "difference" | "value";

/** The middle of the numbers, or of the two in the middle. Throws `RangeError` if there are none. */
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
 * A ratio is the median of those of each round of the subject and the round of the baseline beside it: a machine that is now slow and
 * now fast is the same for both. A difference is that of the medians.
 */
export function judge(by: Judgement, subject: Spread, baseline: Spread | null): number {
  if (by === "value") return subject.median;
  if (baseline === null) throw new RangeError(`a ${by} needs a baseline`);
  if (by === "difference") return subject.median - baseline.median;
  const { samples } = baseline;
  if (samples.length !== subject.samples.length) return subject.median / baseline.median;
  return median(subject.samples.map((figure, round) => figure / (samples[round] ?? Number.NaN)));
}

/** What the judged figure has to keep to. */
export interface Bound {
  readonly at_least?: number;
  readonly at_most?: number;
}

export function keeps(figure: number, { at_least, at_most }: Bound): boolean {
  return figure >= (at_least ?? Number.NEGATIVE_INFINITY) && figure <= (at_most ?? Number.POSITIVE_INFINITY);
}

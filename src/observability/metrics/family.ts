/** One value of a metric. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

export type Labels = Readonly<Record<string, string>>;

/**
 * A metric that is read when it is scraped: its owner keeps plain numbers. Names and units follow the Prometheus conventions
 * (https://prometheus.io/docs/practices/naming/).
 */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  /** Returns a number for a metric without labels; null or no samples if the value is unknown. */
  read(): number | null | readonly Sample[];
}

/** The observations of a histogram. */
export interface HistogramSample {
  readonly labels: Labels;
  /** Observations per bucket, not cumulative; the last is above every bound. */
  readonly counts: ArrayLike<number>;
  readonly sum: number;
}

export interface HistogramFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "histogram";
  /** Upper bounds, ascending. */
  readonly bounds: readonly number[];
  read(): readonly HistogramSample[];
}

export type AnyFamily = Family | HistogramFamily;

/** One value of a metric. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

export type Labels = Readonly<Record<string, string>>;

/**
 * A metric that is read when it is scraped: whoever counts keeps plain numbers, and a scrape asks for them. Names and units are those of
 * the Prometheus conventions (https://prometheus.io/docs/practices/naming/).
 */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  /** A number, of a metric without labels; null or no samples: nothing is known now. */
  read(): number | null | readonly Sample[];
}

/** How many observations there were, by how large they were. */
export interface HistogramSample {
  readonly labels: Labels;
  /** Up to each bound, and above the last one; not added up. */
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

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

export interface HistogramSample {
  readonly labels: Labels;
  /** Observations per bucket, not cumulative; the last is above every bound. */
  readonly counts: ArrayLike<number>;
  readonly sum: number;
}

export interface HistogramFamily extends Pick<Family, "name" | "help"> {
  readonly type: "histogram";
  /** Upper bounds, ascending. */
  readonly bounds: readonly number[];
  read(): readonly HistogramSample[];
}

export type AnyFamily = Family | HistogramFamily;

export function gauge(name: string, help: string, read: Family["read"]): Family {
  return { name, help, type: "gauge", read };
}

export function counter(name: string, help: string, read: Family["read"]): Family {
  return { name, help, type: "counter", read };
}

/** Returns a sample for each value, with its name in this label. */
export function samples(label: string, values: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }));
}

/** Converts milliseconds to the seconds of a metric; null stays null. */
export function seconds(milliseconds: number | null): number | null {
  return milliseconds === null ? null : milliseconds / 1000;
}

/** Counters by two labels with closed sets of values, such as a kind and an outcome. */
export class Counts<A extends string, B extends string> {
  readonly #names: readonly [string, string];
  readonly #counts = new Map<A, Map<B, number>>();

  constructor(first: string, second: string) {
    this.#names = [first, second];
  }

  add(first: A, second: B): void {
    let counts = this.#counts.get(first);
    if (counts === undefined) {
      counts = new Map();
      this.#counts.set(first, counts);
    }
    counts.set(second, (counts.get(second) ?? 0) + 1);
  }

  samples(): Sample[] {
    const [name, other] = this.#names;
    return [...this.#counts].flatMap(([first, counts]) =>
      [...counts].map(([second, value]) => ({ labels: { [name]: first, [other]: second }, value })),
    );
  }
}

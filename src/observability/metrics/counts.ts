import type { Labels, Sample } from "./family.ts";

/** Counters by two labels with closed sets of values, such as a kind and an outcome. */
export class Counts<A extends string, B extends string> {
  readonly #names: readonly [string, string];
  readonly #counts = new Map<A, Map<B, number>>();

  /** Takes the names of the two labels. */
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
    return [...this.#counts].flatMap(([first, counts]) =>
      [...counts].map(([second, value]) => ({ labels: this.#labels(first, second), value })),
    );
  }

  #labels(first: A, second: B): Labels {
    return { [this.#names[0]]: first, [this.#names[1]]: second };
  }
}

/** A seeded random source, which makes a run reproducible. */
export interface Seeded {
  readonly seed: number;
  /** Returns an integer from 0 to below `bound`. */
  below(bound: number): number;
  pick<T>(items: readonly T[]): T;
  shuffled<T>(items: readonly T[]): T[];
  /** Returns an independent source, determined by this seed. */
  fork(): Seeded;
}

/** Returns a source with the seed of the environment variable, else that of `KEYHOLD_TEST_SEED`, else a new one. Prints the seed. */
export function seededBy(variable: string): Seeded {
  const seed = Number(process.env[variable] ?? process.env.KEYHOLD_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
  console.info(`${variable}=${seed}`);
  return seeded(seed);
}

/** Returns a source with this seed (Mulberry32). */
export function seeded(seed: number): Seeded {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const below = (bound: number) => next() % bound;
  const pick = <T>(items: readonly T[]): T => {
    const item = items[below(items.length)];
    if (item === undefined) throw new Error("nothing to choose from");
    return item;
  };
  return {
    seed,
    below,
    pick,
    shuffled: (items) => {
      const rest = [...items];
      return items.flatMap(() => rest.splice(below(rest.length), 1));
    },
    fork: () => seeded(next()),
  };
}

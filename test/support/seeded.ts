/** Choices that a seed decides: a run can be had again. */
export interface Seeded {
  readonly seed: number;
  /** A whole number from 0 to below `bound`. */
  below(bound: number): number;
  pick<T>(items: readonly T[]): T;
  shuffled<T>(items: readonly T[]): T[];
  /** Another sequence that this seed decides. */
  fork(): Seeded;
}

/** The seed is that of the environment's variable, or a new one; it is printed, to be given again. */
export function seededBy(variable: string): Seeded {
  const seed = Number(process.env[variable] ?? Math.floor(Math.random() * 2 ** 31));
  console.info(`${variable}=${seed}`);
  return seeded(seed);
}

/** Mulberry32: small, and good enough to choose by. */
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

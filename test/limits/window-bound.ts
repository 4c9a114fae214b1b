/** Tokens that may be admitted beyond the bound in every window that ends at `from` or later, and begins at `to` or earlier. */
export interface Allowance {
  readonly from: number;
  readonly to: number;
  readonly tokens: number;
}

export interface Bound {
  /** Tokens in any window, whatever its length. */
  readonly fixed: number;
  /** Tokens per millisecond. */
  readonly rate: number;
  readonly allowances: readonly Allowance[];
}

export interface Fullest {
  /** The largest number of tokens by which a window exceeds the bound; negative: none does. */
  readonly excess: number;
  /** The largest part of its bound that is admitted in a window. */
  readonly part: number;
}

/**
 * Compares every window between two admissions with the bound. In order of time, with `c(k)` the tokens admitted up to the k-th admission, the
 * window of i to j exceeds it by `(c(j) - rate t(j)) - (c(i - 1) - rate t(i)) - fixed`, so the largest excess takes one pass.
 */
export function fullestWindow(admitted: readonly number[], { fixed, rate, allowances }: Bound): Fullest {
  let [best, excess, part] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY, 0];
  let bestStart = 0;
  for (const [index, time] of admitted.entries()) {
    const start = rate * time - index + allowed(allowances, ({ to }) => to < time);
    if (start > best) [best, bestStart] = [start, index];
    const end = index + 1 - rate * time - allowed(allowances, ({ from }) => from <= time);
    const over = best + end - fixed;
    excess = Math.max(excess, over);
    const count = index + 1 - bestStart;
    part = Math.max(part, count / (count - over));
  }
  return { excess, part };
}

function allowed(allowances: readonly Allowance[], applies: (allowance: Allowance) => boolean): number {
  let sum = 0;
  for (const allowance of allowances) if (applies(allowance)) sum += allowance.tokens;
  return sum;
}

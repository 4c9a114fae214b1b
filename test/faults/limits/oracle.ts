/** A verification that was admitted between two times, in milliseconds since the epoch. */
export interface Admission {
  readonly began: number;
  readonly ended: number;
}

export interface Period {
  readonly from: number;
  readonly to: number;
}

export interface RateBound {
  /** Tokens in any window, whatever its length. */
  readonly fixed: number;
  /** Tokens per millisecond. */
  readonly rate: number;
  /** Times at which nodes crashed, and the debt that each may have lost. */
  readonly crashes: readonly number[];
  readonly debt: number;
}

/** Milliseconds between the times at which windows begin and end. */
const STEP = 100;

/**
 * Returns by how many tokens the fullest window exceeds the bound, and the part of its bound that it has. A token was spent at an unknown time of its
 * verification, so a window has those of the verifications that began and ended in it, and may have more: an excess is certain.
 */
export function fullest(admissions: readonly Admission[], { fixed, rate, crashes, debt }: RateBound) {
  const origin = Math.min(...admissions.map(({ began }) => began));
  const slots = admissions.map(
    ({ began, ended }) => [slotOf(began, origin), Math.ceil((ended - origin) / STEP)] as const,
  );
  const count = Math.max(0, ...slots.map(([, end]) => end)) + 1;
  const byStart = Map.groupBy(slots, ([start]) => start);
  const crashesAt = new Float64Array(count + 1);
  for (const time of crashes) if (time >= origin) add(crashesAt, Math.min(count, slotOf(time, origin)), debt);
  const ends = new Float64Array(count + 1);
  let [excess, part] = [Number.NEGATIVE_INFINITY, 0];
  for (let start = count - 1; start >= 0; start--) {
    for (const [, end] of byStart.get(start) ?? []) add(ends, end, 1);
    let [tokens, lost] = [0, 0];
    for (let end = start; end <= count; end++) {
      tokens += ends[end] ?? 0;
      lost += crashesAt[end] ?? 0;
      const bound = fixed + rate * (end - start) * STEP + lost;
      excess = Math.max(excess, tokens - bound);
      part = Math.max(part, tokens / bound);
    }
  }
  return { excess, part };
}

function add(numbers: Float64Array, index: number, amount: number): void {
  numbers[index] = (numbers[index] ?? 0) + amount;
}

function slotOf(time: number, origin: number): number {
  return Math.floor((time - origin) / STEP);
}

/** Returns those that certainly are in a period. */
export function within<T extends Admission>(calls: readonly T[], { from, to }: Period): T[] {
  return calls.filter(({ began, ended }) => began >= from && ended <= to);
}

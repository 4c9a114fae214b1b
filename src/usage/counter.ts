import { REJECTION_REASONS, type Verdict } from "../domain/verdict.ts";

/** What a verification ended with. A column has these names, so a new one needs no migration. */
export const OUTCOMES = ["VALID", ...REJECTION_REASONS] as const;

export type Outcome = (typeof OUTCOMES)[number];

/** How often a key was verified with one outcome. */
export interface UsageRow {
  readonly keyId: string;
  readonly outcome: Outcome;
  readonly count: number;
}

/** Keys with counts that are not flushed yet, of about 200 bytes each. Verifications of more keys are not counted. */
const MAX_KEYS = 200_000;

const VALID = 0;
const INDEX: ReadonlyMap<string, number> = new Map(OUTCOMES.map((outcome, index) => [outcome, index]));

/** Counts verdicts by key and outcome in memory. */
export class UsageCounter {
  /** The counts of a key have the order of `OUTCOMES`. */
  #counts = new Map<string, number[]>();
  readonly #maxKeys: number;
  /** Verdicts that were not counted because there were too many keys. */
  dropped = 0;

  constructor(maxKeys = MAX_KEYS) {
    this.#maxKeys = maxKeys;
  }

  get size(): number {
    return this.#counts.size;
  }

  /** Counts a verdict. One without a key, such as that of an unknown credential, is not counted. */
  readonly add = (verdict: Verdict): void => {
    const { keyId } = verdict;
    if (keyId === null) return;
    const counts = this.#counts.get(keyId) ?? this.#begin(keyId);
    const index = verdict.valid ? VALID : (INDEX.get(verdict.reason) ?? VALID);
    if (counts === undefined) this.dropped++;
    else counts[index] = (counts[index] ?? 0) + 1;
  };

  #begin(keyId: string): number[] | undefined {
    if (this.#counts.size >= this.#maxKeys) return undefined;
    const counts = OUTCOMES.map(() => 0);
    this.#counts.set(keyId, counts);
    return counts;
  }

  /** Returns the counts since the last call. */
  take(): UsageRow[] {
    const taken = this.#counts;
    this.#counts = new Map();
    return [...taken].flatMap(([keyId, counts]) =>
      OUTCOMES.flatMap((outcome, index) => {
        const count = counts[index] ?? 0;
        return count === 0 ? [] : [{ keyId, outcome, count }];
      }),
    );
  }
}

import type { LimitStatus } from "../domain/rate-limit.ts";
import { REJECTION_REASONS, type Verdict } from "../domain/verdict.ts";

/** What a verification ended with. A column has these names, so a new one needs no migration. */
export const OUTCOMES = ["VALID", ...REJECTION_REASONS] as const;

export type Outcome = (typeof OUTCOMES)[number];

/** The beginning of the names that units of limits are stored by, beside outcomes; no outcome has it. */
export const UNITS = "units/";

/** How often a key was verified with one outcome, or what its verifications have cost by the limits of one name. */
export interface UsageRow {
  readonly keyId: string;
  readonly outcome: Outcome | `${typeof UNITS}${string}`;
  readonly count: number;
}

/** Keys with counts that are not flushed yet, of about 200 bytes each, and more with limits. Verifications of more keys are not counted. */
const MAX_KEYS = 200_000;

const VALID = 0;
const INDEX: ReadonlyMap<string, number> = new Map(OUTCOMES.map((outcome, index) => [outcome, index]));

/** What is counted of a key. */
interface Counts {
  /** In the order of `OUTCOMES`. */
  readonly outcomes: number[];
  readonly units: { readonly limit: string; count: number }[];
}

/** Counts verdicts by key and outcome, and the units of limits that they have cost, in memory. */
export class UsageCounter {
  #counts = new Map<string, Counts>();
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
    if (counts === undefined) {
      this.dropped++;
      return;
    }
    const { outcomes, units } = counts;
    const index = verdict.valid ? VALID : (INDEX.get(verdict.reason) ?? VALID);
    outcomes[index] = (outcomes[index] ?? 0) + 1;
    if (verdict.valid && verdict.limits !== undefined) addUnits(units, verdict.limits);
  };

  #begin(keyId: string): Counts | undefined {
    if (this.#counts.size >= this.#maxKeys) return undefined;
    const counts = { outcomes: OUTCOMES.map(() => 0), units: [] };
    this.#counts.set(keyId, counts);
    return counts;
  }

  /** Returns the counts since the last call. */
  take(): UsageRow[] {
    const taken = this.#counts;
    this.#counts = new Map();
    return [...taken].flatMap(([keyId, { outcomes, units }]) => [
      ...OUTCOMES.flatMap((outcome, index) => {
        const count = outcomes[index] ?? 0;
        return count === 0 ? [] : [{ keyId, outcome, count }];
      }),
      ...units.map(({ limit, count }) => ({ keyId, outcome: `${UNITS}${limit}` as const, count })),
    ]);
  }
}

/** Adds the costs of a verification, of limits with one name once: a cost is by name, and the key and its actor may both have the limit. */
function addUnits(units: Counts["units"], limits: readonly LimitStatus[]): void {
  for (const status of limits) {
    const { limit, cost } = status;
    if (cost === 0 || firstNamed(limits, limit.name) !== status) continue;
    const known = unitsNamed(units, limit.name);
    if (known === undefined) units.push({ limit: limit.name, count: cost });
    else known.count += cost;
  }
}

// Loops, because each call of `find` would allocate a function.
function firstNamed(limits: readonly LimitStatus[], name: string): LimitStatus | undefined {
  for (const status of limits) if (status.limit.name === name) return status;
  return undefined;
}

function unitsNamed(units: Counts["units"], name: string) {
  for (const one of units) if (one.limit === name) return one;
  return undefined;
}

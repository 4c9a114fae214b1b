import type { Fixture } from "./fixture.ts";
import type { Description } from "./results.ts";

/** Measures one round: resolves to a figure in the scenario's unit. Rejects on any unexpected response. */
export type Measure = () => Promise<number>;

export interface Pair {
  readonly subject: Measure;
  /** Null if the figure is absolute. */
  readonly baseline: Measure | null;
}

/** Its name is that on the command line, and its key in `thresholds.json` and `results.json`. */
export interface Scenario extends Description {
  /** Scenarios of a group share a fixture. */
  readonly group: string;
  /** Additional seconds that it takes; it runs only by name or with `--all`. */
  readonly long?: number;
  /** Programs that it needs; it is skipped if one is missing. */
  readonly needs?: readonly string[];
  /** Number of rounds, without a warm-up round, if rounds are expensive or need no warm-up. */
  readonly rounds?: number;
  prepare(fixture: Fixture): Promise<Pair>;
}

import type { Fixture } from "./fixture.ts";
import type { FigureKind } from "./statistics.ts";

/** Measures one round: resolves to a figure in the scenario's unit. Rejects on any unexpected response. */
export type Measure = () => Promise<number>;

export interface Pair {
  readonly subject: Measure;
  /** Null if the figure is absolute. */
  readonly baseline: Measure | null;
}

export interface Scenario {
  /** Its name on the command line and its key in `thresholds.json` and `results.json`. */
  readonly name: string;
  /** Scenarios of a group share a fixture. */
  readonly group: string;
  /** Description of the measured work. */
  readonly work: string;
  /** Description of the baseline. */
  readonly against: string;
  readonly unit: string;
  readonly judged: FigureKind;
  /** Additional seconds that it takes; it runs only by name or with `--all`. */
  readonly long?: number;
  /** Programs that it needs; it is skipped if one is missing. */
  readonly needs?: readonly string[];
  /** Number of rounds, without a warm-up round, if rounds are expensive or need no warm-up. */
  readonly rounds?: number;
  prepare(fixture: Fixture): Promise<Pair>;
}

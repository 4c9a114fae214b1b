import type { Stage } from "./stage.ts";
import type { Judgement } from "./statistics.ts";

/** One round: resolves with a figure in the scenario's unit, and rejects on any answer that was not the expected one. */
export type Measure = () => Promise<number>;

export interface Pair {
  readonly subject: Measure;
  /** Null where the figure is judged by itself. */
  readonly baseline: Measure | null;
}

export interface Scenario {
  /** What it is asked for by, and found under in `thresholds.json` and `results.json`. */
  readonly name: string;
  /** Scenarios of a group share what they start. */
  readonly group: string;
  /** The work, for people. */
  readonly work: string;
  /** What it was compared with, for people. */
  readonly against: string;
  readonly unit: string;
  readonly judged: Judgement;
  /** Left out unless it is asked for: seconds that it takes beyond the usual. */
  readonly long?: number;
  /** Programs without which it is skipped. */
  readonly needs?: readonly string[];
  /** Where a round is dear or has nothing to warm: rounds, and no warm-up. */
  readonly rounds?: number;
  prepare(stage: Stage): Promise<Pair>;
}

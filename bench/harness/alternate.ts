import type { Pair } from "./scenario.ts";
import { type Spread, spread } from "./statistics.ts";

export interface Rounds {
  readonly subject: Spread;
  readonly baseline: Spread | null;
}

/** Alternates subject and baseline round by round, so that other load on the machine affects both. A warm-up round is discarded. */
export async function alternate({ subject, baseline }: Pair, rounds: number, warmUp: boolean): Promise<Rounds> {
  const samples: { subject: number; baseline: number | null }[] = [];
  for (let round = warmUp ? -1 : 0; round < rounds; round++) {
    const sample = { subject: await subject(), baseline: baseline === null ? null : await baseline() };
    if (round >= 0) samples.push(sample);
  }
  const baselines = samples.flatMap((sample) => sample.baseline ?? []);
  return {
    subject: spread(samples.map((sample) => sample.subject)),
    baseline: baselines.length === 0 ? null : spread(baselines),
  };
}

import { alternate } from "./alternate.ts";
import { openFixture, THIS_CHECKOUT } from "./fixture.ts";
import type { Pinning } from "./pinning.ts";
import type { Result } from "./results.ts";
import type { RunOptions } from "./run.ts";
import type { Scenario } from "./scenario.ts";
import { figureOf, spread } from "./statistics.ts";

export interface CompareOptions extends RunOptions {
  /** The root folder of the other checkout. */
  readonly other: string;
  /** How often both servers are started: two starts of the same program may differ by a tenth in speed. */
  readonly starts: number;
}

/** Compares the server of this checkout with that of another checkout, alternating round by round, each with its own database. */
export async function compareCheckouts(
  pinning: Pinning,
  scenarios: readonly Scenario[],
  options: CompareOptions,
): Promise<void> {
  for (const scenario of scenarios) {
    try {
      options.onResult(await compare(pinning, scenario, options));
    } catch (error) {
      options.onFailure(scenario, error);
    }
  }
}

async function compare(pinning: Pinning, scenario: Scenario, options: CompareOptions): Promise<Result> {
  const { name, work, unit, long } = scenario;
  const starts = long === undefined ? options.starts : 1;
  const [ours, theirs]: [number[], number[]] = [[], []];
  for (let start = 0; start < starts; start++) {
    const { subject, baseline } = await measureBoth(pinning, scenario, options);
    ours.push(...subject.samples);
    theirs.push(...(baseline?.samples ?? []));
  }
  const [subject, baseline] = [spread(ours), spread(theirs)];
  const time = new Date().toISOString();
  const judged = "ratio";
  return {
    name,
    work,
    against: options.other,
    unit,
    judged,
    subject,
    baseline,
    figure: figureOf(judged, subject, baseline),
    time,
  };
}

async function measureBoth(pinning: Pinning, scenario: Scenario, { other, rounds, seconds }: CompareOptions) {
  const [ours, theirs] = [
    await openFixture(pinning, seconds, THIS_CHECKOUT),
    await openFixture(pinning, seconds, other),
  ];
  try {
    const { subject } = await scenario.prepare(ours);
    const { subject: baseline } = await scenario.prepare(theirs);
    return await alternate({ subject, baseline }, scenario.rounds ?? rounds, scenario.rounds === undefined);
  } finally {
    await Promise.all([ours.close(), theirs.close()]);
  }
}

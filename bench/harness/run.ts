import { alternate } from "./alternate.ts";
import { type Fixture, openFixture } from "./fixture.ts";
import type { Pinning } from "./pinning.ts";
import type { Result } from "./results.ts";
import type { Scenario } from "./scenario.ts";
import { figureOf } from "./statistics.ts";

export interface RunOptions {
  readonly rounds: number;
  /** Seconds of one round. */
  readonly seconds: number;
  /** Called with each result as soon as it is known. */
  onResult(result: Result): void;
  /** Called for a scenario that could not be measured. */
  onFailure(scenario: Scenario, error: unknown): void;
}

/** Runs scenarios; a group shares one fixture. A failed scenario does not stop the others. */
export async function runScenarios(
  pinning: Pinning,
  scenarios: readonly Scenario[],
  options: RunOptions,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const group of Map.groupBy(scenarios, ({ group }) => group).values()) {
    const fixture = await openFixture(pinning, options.seconds);
    try {
      for (const scenario of group) results.push(...(await attempt(fixture, scenario, options)));
    } finally {
      await fixture.close();
    }
  }
  return results;
}

async function attempt(fixture: Fixture, scenario: Scenario, options: RunOptions): Promise<Result[]> {
  try {
    const result = await measure(fixture, scenario, options);
    options.onResult(result);
    return [result];
  } catch (error) {
    options.onFailure(scenario, error);
    return [];
  }
}

async function measure(fixture: Fixture, scenario: Scenario, { rounds }: RunOptions): Promise<Result> {
  const { name, work, against, unit, judged } = scenario;
  const pair = await scenario.prepare(fixture);
  const { subject, baseline } = await alternate(pair, scenario.rounds ?? rounds, scenario.rounds === undefined);
  const time = new Date().toISOString();
  return { name, work, against, unit, judged, subject, baseline, figure: figureOf(judged, subject, baseline), time };
}

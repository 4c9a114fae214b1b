import { alternate } from "./alternate.ts";
import type { Pinning } from "./pinning.ts";
import type { Result } from "./results.ts";
import type { Scenario } from "./scenario.ts";
import { openStage, type Stage } from "./stage.ts";
import { judge } from "./statistics.ts";

export interface RunOptions {
  readonly rounds: number;
  /** Of one round. */
  readonly seconds: number;
  /** Told of each result as it is there. */
  onResult(result: Result): void;
  /** Told of a scenario that could not be measured. */
  onFailure(scenario: Scenario, error: unknown): void;
}

/** Runs scenarios, those of a group on one stage. One that fails does not stop the others. */
export async function runScenarios(
  pinning: Pinning,
  scenarios: readonly Scenario[],
  options: RunOptions,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const group of Map.groupBy(scenarios, ({ group }) => group).values()) {
    const stage = await openStage(pinning, options.seconds);
    try {
      for (const scenario of group) results.push(...(await attempt(stage, scenario, options)));
    } finally {
      await stage.close();
    }
  }
  return results;
}

async function attempt(stage: Stage, scenario: Scenario, options: RunOptions): Promise<Result[]> {
  try {
    const result = await measure(stage, scenario, options);
    options.onResult(result);
    return [result];
  } catch (error) {
    options.onFailure(scenario, error);
    return [];
  }
}

async function measure(stage: Stage, scenario: Scenario, { rounds }: RunOptions): Promise<Result> {
  const { name, work, against, unit, judged } = scenario;
  const pair = await scenario.prepare(stage);
  const { subject, baseline } = await alternate(pair, scenario.rounds ?? rounds, scenario.rounds === undefined);
  const time = new Date().toISOString();
  return { name, work, against, unit, judged, subject, baseline, figure: judge(judged, subject, baseline), time };
}

import { setTimeout as sleep } from "node:timers/promises";
import type { Defect } from "../fault-injection.ts";
import type { Mutation } from "../history.ts";
import { judge, type Violation } from "../judge.ts";
import { lostChanges } from "./journal.ts";
import type { Outcome } from "./outcome.ts";
import type { Scenario } from "./scenarios.ts";
import { auditAll, closeStage, openStage, RECOVERY, type Stage, startStageLoad, untilReady } from "./stage.ts";
import { acceptIfRefused, move } from "./steps.ts";

export interface PlayOptions {
  readonly seed: number;
  readonly dir: string;
  readonly defect: Defect | null;
}

/** Milliseconds of load before the first step, and after all nodes are ready again. */
const WARM_UP = 1_500;
const AFTERMATH = 1_500;

/** Plays one scenario on servers and nodes of its own. */
export async function play(scenario: Scenario, options: PlayOptions): Promise<Outcome> {
  const began = performance.now();
  const { replication, staleGrace = 0, needsPgBouncer = false } = scenario;
  const environment = { ...scenario.environment, KEYHOLD_STALE_GRACE: `${staleGrace}s` };
  const stage = await openStage({ ...options, replication, environment, hasPgBouncer: needsPgBouncer });
  stage.history.staleGrace = staleGrace * 1000;
  try {
    const recovery = await runUnderLoad(stage, scenario);
    return { ...(await conclude(scenario, stage, recovery)), seconds: (performance.now() - began) / 1000 };
  } finally {
    await closeStage(stage);
  }
}

/** Answers how long the nodes took to become ready in the end. */
async function runUnderLoad(stage: Stage, scenario: Scenario): Promise<number | null> {
  const load = await startStageLoad(stage);
  const recovery = await run(stage, scenario).finally(() => load.stop());
  await auditAll(stage);
  return recovery;
}

async function run(stage: Stage, { steps, mayLose }: Scenario): Promise<number | null> {
  await sleep(WARM_UP);
  for (const step of steps) await step(stage);
  await move()(stage);
  const began = performance.now();
  if (mayLose) await acceptIfRefused(stage);
  const isRecovered = (await untilReady(stage, RECOVERY)) !== null;
  const recovery = isRecovered ? performance.now() - began : null;
  await sleep(AFTERMATH);
  return recovery;
}

async function conclude({ name, title, mayLose }: Scenario, stage: Stage, recovery: number | null) {
  const { history, notes } = stage;
  history.unexpected.push(...stage.nodes.flatMap(({ troubles }) => troubles));
  const lost = await lostChanges(stage.primary, history);
  const wrong = judge(history, new Set(mayLose ? lost : []));
  const violations: Violation[] = [
    ...wrong,
    ...stage.violations.map((text) => ({ began: performance.now(), late: null, text })),
  ];
  const failures = [
    ...violations.map(({ text }) => `violation: ${text}`),
    ...(mayLose ? [] : lost.map(describeLost)),
    ...(mayLose ? [] : history.unexpected.map((text) => `unexpected: ${text}`)),
    ...(recovery === null ? ["not all nodes became ready again"] : []),
  ];
  return {
    name,
    title,
    history,
    violations,
    lost: lost.length,
    recovery,
    notes,
    failures,
  };
}

function describeLost({ kind, node, began, acknowledged }: Mutation): string {
  return `lost: ${kind} that ${node} acknowledged, ${(began / 1000).toFixed(3)}-${((acknowledged ?? 0) / 1000).toFixed(3)}s`;
}

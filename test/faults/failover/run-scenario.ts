import { setTimeout as sleep } from "node:timers/promises";
import { replayAuditLog } from "../../support/audit-replay.ts";
import { compareEvents } from "../audit-log.ts";
import type { ClusterNode } from "../cluster.ts";
import type { Defect } from "../fault-injection.ts";
import type { Mutation } from "../history.ts";
import { verifyUsage } from "../usage.ts";
import { keepCheckpoint, verifyLog } from "../verify-log.ts";
import { findViolations, type Violation } from "../violations.ts";
import {
  auditAll,
  closeFixture,
  type Fixture,
  openFixture,
  RECOVERY_TIMEOUT,
  startFixtureLoad,
  untilReady,
} from "./fixture.ts";
import type { Outcome } from "./outcome.ts";
import type { Scenario } from "./scenarios.ts";
import { acceptIfRefused, redirect } from "./steps.ts";

export interface ScenarioOptions {
  readonly seed: number;
  readonly dir: string;
  readonly defect: Defect | null;
}

/** Milliseconds of load before the first step, and after all nodes are ready again. */
const WARM_UP = 1_500;
const SETTLE_TIME = 1_500;

/** Runs one scenario on its own servers and nodes. */
export async function runScenario(scenario: Scenario, options: ScenarioOptions): Promise<Outcome> {
  const began = performance.now();
  const { replication, staleGrace = 0, needsPgBouncer = false } = scenario;
  const environment = { ...scenario.environment, KEYHOLD_STALE_GRACE: `${staleGrace}s` };
  const fixture = await openFixture({ ...options, replication, environment, hasPgBouncer: needsPgBouncer });
  fixture.history.staleGrace = staleGrace * 1000;
  try {
    const recovery = await runUnderLoad(fixture, scenario);
    return { ...(await conclude(scenario, fixture, recovery)), seconds: (performance.now() - began) / 1000 };
  } finally {
    await closeFixture(fixture);
  }
}

/** Runs the steps under load. Returns the milliseconds until all nodes were ready at the end. */
async function runUnderLoad(fixture: Fixture, scenario: Scenario): Promise<number | null> {
  const [node] = fixture.nodes as [ClusterNode];
  const checkpoint = await keepCheckpoint(node, fixture.dir);
  const load = await startFixtureLoad(fixture);
  const recovery = await runSteps(fixture, scenario).finally(() => load.stop());
  await auditAll(fixture);
  if (recovery !== null)
    fixture.violations.push(...(await verifyLog(node, scenario.mayLoseChanges ? null : checkpoint)));
  return recovery;
}

async function runSteps(fixture: Fixture, { steps, mayLoseChanges }: Scenario): Promise<number | null> {
  await sleep(WARM_UP);
  for (const step of steps) await step(fixture);
  await redirect()(fixture);
  const began = performance.now();
  if (mayLoseChanges) await acceptIfRefused(fixture);
  const isRecovered = (await untilReady(fixture, RECOVERY_TIMEOUT)) !== null;
  const recovery = isRecovered ? performance.now() - began : null;
  await sleep(SETTLE_TIME);
  return recovery;
}

async function conclude({ name, title, mayLoseChanges }: Scenario, fixture: Fixture, recovery: number | null) {
  const { history, notes, nodes, primary } = fixture;
  history.unexpected.push(...nodes.flatMap(({ unexpected }) => unexpected));
  const { events, violations: differences } = await replayAuditLog(primary.admin);
  const { lost, violations: wrongEvents } = compareEvents(history, events);
  const unexplained = findViolations(history, new Set(mayLoseChanges ? lost : []));
  const ofUsage = await verifyUsage(history, nodes, primary.url(), mayLoseChanges);
  const violations: Violation[] = [
    ...unexplained,
    ...[...fixture.violations, ...differences, ...wrongEvents, ...ofUsage].map((text) => ({
      ...{ began: performance.now(), late: null, text },
    })),
  ];
  const failures = [
    ...violations.map(({ text }) => `violation: ${text}`),
    ...(mayLoseChanges ? [] : lost.map(describeLost)),
    ...(mayLoseChanges ? [] : history.unexpected.map((text) => `unexpected: ${text}`)),
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

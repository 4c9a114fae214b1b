import { setTimeout as sleep } from "node:timers/promises";
import { paths } from "../../support/rest.ts";
import { closeFixture, type Fixture, openFixture, RECOVERY_TIMEOUT, untilReady } from "../failover/fixture.ts";
import { redirect } from "../failover/steps.ts";
import type { Defect } from "../fault-injection.ts";
import { type Faults, injectUntil, replacePrimary } from "./faults.ts";
import { CLIENTS, newAnswers, now, verifyOnAll } from "./load.ts";
import { fullest } from "./oracle.ts";
import { type Answers, useOf } from "./quota-oracle.ts";

export interface LimitsOptions {
  readonly seed: number;
  readonly dir: string;
  readonly defect: Defect | null;
  /** Seconds with faults before the first period of the quota ends, and after it. */
  readonly seconds: number;
  /** Seconds without faults before; 0: the part of its bound that a window has then is not checked. */
  readonly steadySeconds: number;
}

const DAY = 86_400_000;

/** A server leases tokens for a second. */
const RATE = { quota: 600, window: 60_000, burst: 120 };
const LEASE = 1_000;
/** Of all nodes together, twice, at most; and of a node that crashes. */
const DEBT = { all: 0.05 * RATE.burst, crash: Math.floor((0.05 * RATE.burst) / 2) };

/** A slow machine verifies so many in a period. */
const QUOTA = 400;
/** The part of its bound that a window has after a pause, if demand lasts. */
const LEAST_PART = 0.95;

/** Milliseconds after the faults in which the second period must be used up. */
const PATIENCE = 60_000;

/** By which the clock of the clients and that of the database may differ at the end of the period. Milliseconds. */
const TOLERANCE = 100;

export interface LimitsResult {
  readonly failures: readonly string[];
  readonly notes: readonly string[];
}

/**
 * Verifies a key with a rate limit and one with a quota on three nodes, whose clocks differ by hours, while nodes are killed and stopped, and
 * PostgreSQL is killed, restarted and replaced by its standby; and checks the answers of all clients.
 */
export async function runLimits(options: LimitsOptions): Promise<LimitsResult> {
  const fixture = await openFixture({ ...options, replication: "on", environment: {}, hasPgBouncer: false });
  try {
    return await runOn(fixture, options.seconds * 1_000, options.steadySeconds * 1_000);
  } finally {
    await closeFixture(fixture);
  }
}

async function runOn(fixture: Fixture, length: number, steadyLength: number): Promise<LimitsResult> {
  const limit = { name: "requests", quota: RATE.quota, window: `${RATE.window / 1_000}s`, burst: RATE.burst };
  const over = new AbortController();
  const [ofRate, ofQuota] = [newAnswers(), newAnswers()];
  const limited = await issue(fixture, { rate_limits: [limit] });
  const load = [verifyOnAll(fixture.members, limited, ofRate, over.signal)];
  await sleep(steadyLength);
  const steady = steadyLength === 0 ? null : checkSteady(ofRate);
  const periodEnd = Math.ceil(now()) + length;
  const anchor_time = new Date(periodEnd - 3 * DAY).toISOString();
  const quota = { name: "daily", limit: QUOTA, period: "QUOTA_PERIOD_DAY", anchor_time };
  const counted = await issue(fixture, { quotas: [quota] });
  load.push(verifyOnAll(fixture.members, counted, ofQuota, over.signal));
  const faults: Faults = { nodes: [], databases: [], all: [] };
  await injectUntil(periodEnd, fixture, faults);
  await replacePrimary(fixture, faults);
  await injectUntil(periodEnd + length, fixture, faults);
  await redirect()(fixture);
  const recovery = await untilReady(fixture, RECOVERY_TIMEOUT);
  const nodes = fixture.nodes.length;
  const usedUpOn = new Set<string>();
  const isUsedUp = () => {
    for (const { node, began } of ofQuota.denied) if (began > periodEnd + TOLERANCE) usedUpOn.add(node);
    return usedUpOn.size === nodes;
  };
  for (const until = now() + PATIENCE; now() < until && !isUsedUp(); ) await sleep(100);
  over.abort();
  await Promise.all(load);
  const results = [
    ...(steady === null ? [] : [steady]),
    checkRate(ofRate, faults),
    checkQuota(ofQuota, faults, nodes, Number.NEGATIVE_INFINITY, periodEnd),
    checkQuota(ofQuota, faults, nodes, periodEnd, Number.POSITIVE_INFINITY),
  ];
  return {
    failures: [
      ...[ofRate, ofQuota].flatMap(({ unexpected }) => unexpected),
      ...results.flatMap(({ failures }) => failures),
      ...fixture.nodes.flatMap(({ unexpected }) => unexpected),
      ...(isUsedUp() ? [] : ["the quota was not used up"]),
      ...(recovery === null ? ["not all nodes became ready again"] : []),
    ],
    notes: [
      `${faults.nodes.length} nodes and ${faults.databases.length} databases killed`,
      ...results.map(({ note }) => note),
    ],
  };
}

/** Returns the secret of a new key. */
async function issue({ members: [member] }: Fixture, fields: object): Promise<string> {
  const answer = await member?.rest.send("POST", paths.issued, { name: "a key", actor_id: "actor_1", ...fields });
  if (answer?.status !== 200) throw new Error(`issuing answered ${JSON.stringify(answer?.body)}`);
  return answer.body.secret;
}

/** Demand lasts after a pause, since no token of a new limit is used. */
function checkSteady({ admitted }: Answers) {
  const { part } = fullest(admitted, { ...boundOfRate(), crashes: [], debt: 0 });
  return {
    failures: part < LEAST_PART ? [`no window reaches ${LEAST_PART} of its bound without faults`] : [],
    note: `rate limit without faults: the fullest window has ${(100 * part).toFixed(1)} % of its bound`,
  };
}

function boundOfRate() {
  const rate = RATE.quota / RATE.window;
  return { rate, fixed: RATE.burst + rate * LEASE + DEBT.all };
}

function checkRate({ admitted, denied, unanswered }: Answers, { nodes }: Faults) {
  const { excess, part } = fullest(admitted, { ...boundOfRate(), crashes: nodes, debt: DEBT.crash });
  return {
    failures: excess > 0 ? [`a window has ${excess.toFixed(1)} tokens more than its bound`] : [],
    note: `rate limit: ${admitted.length} admitted, ${denied.length} denied, ${unanswered.length} without an answer; the fullest window has ${(100 * part).toFixed(1)} % of its bound`,
  };
}

/** What was certainly admitted in a period is at most the quota; and if no node has any left, it is less only by what faults may have lost. */
function checkQuota(answers: Answers, faults: Faults, nodes: number, from: number, to: number) {
  // Connections end when a fault begins, and those of a node that misses its lease when it ends.
  const period = { limit: QUOTA, tolerance: TOLERANCE, nodes, inFlight: 2 * nodes * CLIENTS, from, to };
  const { certain, isUsedUp, lost } = useOf(answers, faults.all, period);
  return {
    failures: [
      ...(certain > QUOTA ? [`a quota of ${QUOTA} admitted ${certain}`] : []),
      ...(isUsedUp && certain < QUOTA - lost ? [`a quota of ${QUOTA} admitted only ${certain}`] : []),
    ],
    note: `quota: ${certain} of ${QUOTA} admitted in a period${isUsedUp ? `; faults may have cost ${lost.toFixed(1)}` : ""}`,
  };
}

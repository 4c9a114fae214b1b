import { setTimeout as sleep } from "node:timers/promises";
import { replayAuditLog, type StoredEvent } from "../support/audit-replay.ts";
import { type Seeded, seeded } from "../support/seeded.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { audit } from "./audit.ts";
import { compareEvents, compareSigningKeyEvents } from "./audit-log.ts";
import { startLoad } from "./clients/load.ts";
import { closeMembers, memberOf } from "./clients/member.ts";
import { type Access, type ClusterNode, startCluster } from "./cluster.ts";
import { type Database, startDatabase } from "./database.ts";
import type { Defect } from "./fault-injection.ts";
import { FAULTS, type Fault, type FaultName, type FaultTarget } from "./faults.ts";
import { History } from "./history.ts";
import { type Totals, tableOf, totalsOf } from "./report.ts";
import { runRound } from "./round.ts";
import { type Round, schedule } from "./schedule.ts";
import { verifyUsage } from "./usage.ts";
import { keepCheckpoint, verifyLog } from "./verify-log.ts";
import { findViolations, type Violation } from "./violations.ts";
import { startWebhookReceiver } from "./webhooks.ts";

export interface RunOptions {
  readonly seed: number;
  /** An empty folder that other users may traverse. */
  readonly dir: string;
  /** Seconds after which no further round begins. */
  readonly seconds: number;
  readonly nodes: number;
  readonly faults: readonly FaultName[];
  readonly defect: Defect | null;
  /** Whether to stop at the first violation. */
  readonly stopAtFirstViolation: boolean;
  /** Additional environment variables of the nodes. */
  readonly environment?: Readonly<Record<string, string>>;
}

export interface Result {
  readonly totals: Totals;
  readonly table: string;
  readonly violations: readonly Violation[];
  readonly unexpected: readonly string[];
  /** Maximum time in milliseconds until all nodes were ready again, from when the database accepted connections. */
  readonly slowestRecovery: number;
}

const ENVIRONMENT = {
  KEYHOLD_ROOT_SECRET: "faults-root-secret-0123456789-abcdefghijklmno",
  KEYHOLD_CACHE_SIZE: "16",
  KEYHOLD_LOG_LEVEL: "warn",
  KEYHOLD_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
};

/** Milliseconds of load before the first fault. */
const WARM_UP = 1_000;

/**
 * Runs a database (`database.ts`), nodes (`cluster.ts`: processes of `node.ts`, each with its own TCP proxy and clock), clients that
 * record responses (`clients/`, `history.ts`), rounds of faults (`faults.ts`, `schedule.ts`, `round.ts`), lists of all records after
 * crashes (`audit.ts`), the audit log (`audit-log.ts`), its webhooks (`webhooks.ts`), the usage of keys (`usage.ts`), and the checker (`violations.ts`, `checker.ts` with the
 * model in `register.ts`).
 */
export async function run(options: RunOptions): Promise<Result> {
  const environment = { ...ENVIRONMENT, ...options.environment };
  const choices = seeded(options.seed);
  const database = await startDatabase(options.dir);
  const webhooks = await startWebhookReceiver(choices.fork());
  const nodes: ClusterNode[] = [];
  try {
    const openAccess = () => openProxy(database, choices.fork());
    for await (const node of startCluster(openAccess, { ...options, environment })) nodes.push(node);
    const [node] = nodes as [ClusterNode];
    await webhooks.subscribe(node);
    const checkpoint = await keepCheckpoint(node, options.dir);
    const history = await runRounds({ nodes, database }, environment, options);
    history.unexpected.push(...(await verifyLog(node, checkpoint)));
    const events = await compareLog(history, database);
    const ofWebhooks = await webhooks.finish(events, database.admin);
    history.unexpected.push(...(await verifyUsage(history, nodes, database.url(database.port))));
    return conclude(history, nodes, ofWebhooks);
  } finally {
    await Promise.all(nodes.map((node) => node.close()));
    await webhooks.close();
    await database.stop();
  }
}

/** Starts one proxy for queries and notifications. With separate URLs, a node would use the first one differently. */
export async function openProxy(database: Database, seeded: Seeded): Promise<Access> {
  const proxy = await TcpProxy.start(`tcp://127.0.0.1:${database.port}`, { seeded });
  return { proxies: { data: proxy, feed: proxy }, environment: { KEYHOLD_DATABASE_URL: database.url(proxy.port) } };
}

async function runRounds(
  target: FaultTarget,
  environment: Readonly<Record<string, string>>,
  { seed, seconds, faults, stopAtFirstViolation }: RunOptions,
): Promise<History> {
  const [history, choices] = [new History(), seeded(seed + 1)];
  const members = target.nodes.map(memberOf);
  const commandEnvironment = { ...environment, KEYHOLD_DATABASE_URL: target.database.url(target.database.port) };
  const load = await startLoad(history, members, choices.fork(), { commandEnvironment });
  await sleep(WARM_UP);
  const end = performance.now() + seconds * 1000;
  const rounds = schedule(faults, choices.fork());
  const isFinished = () => performance.now() > end || (stopAtFirstViolation && findViolations(history).length > 0);
  while (!isFinished()) {
    const round = rounds.next().value;
    await runRound(target, history, round, choices);
    if (isCrash(round)) await audit(history, choices.pick(members));
  }
  await load.stop();
  for (const member of members) await audit(history, member);
  closeMembers(members);
  return history;
}

/** Compares the audit log with the tables and with what the clients have done. It keeps what happened in earlier rounds. Returns its events. */
async function compareLog(history: History, { admin }: Database): Promise<readonly StoredEvent[]> {
  const { events, violations } = await replayAuditLog(admin);
  const { lost, violations: wrong } = compareEvents(history, events);
  const unlogged = lost.map(({ kind, callId }) => `no event of the ${kind} ${callId}`);
  history.unexpected.push(...violations, ...wrong, ...unlogged, ...compareSigningKeyEvents(history, events));
  return events;
}

function conclude(history: History, nodes: readonly ClusterNode[], ofWebhooks: readonly string[]): Result {
  history.unexpected.push(...nodes.flatMap(({ unexpected }) => unexpected));
  const began = performance.now();
  const violations = [...findViolations(history), ...ofWebhooks.map((text) => ({ began, late: null, text }))];
  return {
    totals: totalsOf(history, violations),
    table: tableOf(history, violations),
    violations,
    unexpected: history.unexpected,
    slowestRecovery: Math.max(...history.recoveries),
  };
}

function isCrash(round: Round): boolean {
  return round.some((name) => (FAULTS[name] as Fault).isCrash);
}

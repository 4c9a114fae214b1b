import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { serverRole } from "../../src/embedded-postgres/cluster.ts";
import { audit } from "../faults/audit.ts";
import { type Load, startLoad } from "../faults/clients/load.ts";
import { closeMembers, type Member, memberOf } from "../faults/clients/member.ts";
import { type ClusterNode, currentProgram, startCluster } from "../faults/cluster.ts";
import { type Database, startDatabase } from "../faults/database.ts";
import { DETECTED_BY } from "../faults/fault-injection.ts";
import type { FaultName } from "../faults/faults.ts";
import { History, type Phase } from "../faults/history.ts";
import { type Totals, tableOf, totalsOf } from "../faults/report.ts";
import { runRound } from "../faults/round.ts";
import { openProxy } from "../faults/run.ts";
import { findViolations, type Violation } from "../faults/violations.ts";
import { replayAuditLog } from "../support/audit-replay.ts";
import { eventually, runKeyhold } from "../support/keyhold.ts";
import { type Seeded, seeded } from "../support/seeded.ts";
import { CHECKOUT, COMMAND, migrate } from "./release.ts";

export type ReleaseName = "0.1" | "current";

export interface UpgradeOptions {
  readonly seed: number;
  /** An empty folder that other users may traverse. */
  readonly dir: string;
  /** An installed checkout of release 0.1. */
  readonly oldCheckout: string;
}

export interface Outcome {
  readonly table: string;
  readonly totals: Totals;
  readonly violations: readonly Violation[];
  /** Other failures. */
  readonly failures: readonly string[];
}

const NODES = 3;
const KEYS_OF_OWNER = 12;

const ENVIRONMENT = {
  KEYHOLD_ROOT_SECRET: "upgrade-root-secret-0123456789-abcdefghijklmn",
  KEYHOLD_CACHE_SIZE: "16",
  KEYHOLD_LOG_LEVEL: "warn",
  // Longer than the default, since clients, nodes and PostgreSQL share the cores of one machine.
  KEYHOLD_LEASE_TTL: "5s",
};

/** Milliseconds of load in each phase of the upgrade. */
const PHASE_TIME = 3_000;

/** Seconds in which the checker must detect the missing wait. */
const EXPOSING_SECONDS = 60;

/** The faults that are injected while nodes of both releases run. */
const FAULTS: readonly FaultName[] = [
  "node stopped",
  "node killed",
  "node cut off",
  "feed cut",
  "network slow",
  "PostgreSQL killed",
];

/** Three nodes on one database, under load. */
interface Fixture extends UpgradeOptions {
  readonly database: Database;
  readonly ownerUrl: string;
  readonly nodes: readonly ClusterNode[];
  readonly members: readonly Member[];
  readonly history: History;
  readonly choices: Seeded;
  /** The release whose nodes do not wait for the others. */
  readonly withoutWait: ReleaseName | null;
  readonly failures: string[];
}

/** Migrates the database of three nodes of release 0.1, upgrades them one after another, and returns one to 0.1. */
export function runUpgrade(options: UpgradeOptions): Promise<Outcome> {
  return withFixture({ ...options, withoutWait: null }, async (fixture) => {
    await runPhase(fixture, "0.1 alone");
    await migrateUnderLoad(fixture);
    const faults = fixture.choices.shuffled(FAULTS);
    for (const [place, node] of fixture.nodes.entries()) {
      await restart(fixture, node, "current");
      await runPhase(fixture, `${place + 1} upgraded`);
      await compareVersions(fixture, place + 1);
      if (place + 1 < NODES) await injectFaults(fixture, faults.splice(0, FAULTS.length / (NODES - 1)));
    }
    for (const node of fixture.nodes.slice(0, 1)) await restart(fixture, node, "0.1");
    await runPhase(fixture, "1 back on 0.1");
  });
}

/** Returns a violation that the checker finds when two nodes, of this release, do not wait for the others; null: none. */
export async function expose(options: UpgradeOptions, withoutWait: ReleaseName): Promise<Violation | null> {
  let found: Violation | undefined;
  await withFixture({ ...options, withoutWait }, async (fixture) => {
    await migrateUnderLoad(fixture);
    const upgraded = withoutWait === "current" ? 2 : 1;
    for (const node of fixture.nodes.slice(0, upgraded)) await restart(fixture, node, "current");
    const start = performance.now();
    const find = () => findViolations(fixture.history).find(({ began }) => began > start);
    for (found = find(); found === undefined && performance.now() < start + EXPOSING_SECONDS * 1000; found = find())
      await injectFaults(fixture, [fixture.choices.pick(DETECTED_BY.wait ?? [])]);
  });
  return found ?? null;
}

async function withFixture(
  options: UpgradeOptions & Pick<Fixture, "withoutWait">,
  work: (fixture: Fixture) => Promise<void>,
): Promise<Outcome> {
  const { dir, oldCheckout } = options;
  const choices = seeded(options.seed);
  let ownerUrl = "";
  const database = await startDatabase(dir, (url, serverRole) => {
    ownerUrl = url;
    return migrate(oldCheckout, url, serverRole);
  });
  const nodes: ClusterNode[] = [];
  try {
    const program = programOf("0.1", options);
    const cluster = { dir, nodes: NODES, environment: ENVIRONMENT, defect: null, program };
    for await (const node of startCluster(() => openProxy(database, choices.fork()), cluster)) nodes.push(node);
    const members = nodes.map(memberOf);
    const fixture = { ...options, database, ownerUrl, nodes, members, history: new History(), choices, failures: [] };
    await runUnderLoad(fixture, work);
    return await conclude(fixture);
  } finally {
    await Promise.all(nodes.map((node) => node.close()));
    await database.stop();
  }
}

async function runUnderLoad(fixture: Fixture, work: (fixture: Fixture) => Promise<void>): Promise<void> {
  const { history, members, choices, oldCheckout } = fixture;
  const load: Load = await startLoad(history, members, choices.fork(), {
    commandEnvironment: commandEnvironment(fixture),
    keysOfOwner: KEYS_OF_OWNER,
    mayDisable: false,
    mayRevokeSigningKeys: false,
    commands: [oldCheckout, CHECKOUT].map((checkout) => join(checkout, COMMAND)),
    // Release 0.1 knows no other.
    algorithms: ["EdDSA"],
  });
  await work(fixture).finally(() => load.stop());
  for (const member of members) await audit(history, member);
  closeMembers(members);
}

async function conclude({ history, nodes, database, failures }: Fixture): Promise<Outcome> {
  const violations = findViolations(history);
  failures.push(...(await compareLog(database)));
  const orphans = await database.admin`
    SELECT FROM raw_key_digests WHERE NOT EXISTS (SELECT FROM api_keys WHERE api_keys.key_id = raw_key_digests.key_id)`;
  if (orphans.length > 0) failures.push(`${orphans.length} digests of keys that are gone`);
  return {
    table: tableOf(history, violations),
    totals: totalsOf(history, violations),
    violations,
    failures: [
      ...failures,
      ...history.unexpected,
      ...nodes.flatMap(({ unexpected }) => unexpected),
      ...outages(history, nodes),
    ],
  };
}

/** Returns how the audit log differs from the tables. It has the changes of both releases: those of release 0.1 without a call. */
async function compareLog({ admin }: Database): Promise<string[]> {
  const { events, violations } = await replayAuditLog(admin, "with rows");
  const callers = new Set(events.filter(({ keyId }) => keyId !== null).map(({ call }) => call.caller));
  const missing = ["none:anonymous", `database:${serverRole}`].filter((caller) => !callers.has(caller));
  return [...violations, ...missing.map((caller) => `the audit log has no change of ${caller}`)];
}

/** Prefix of the names of phases without faults. */
const PAUSE = "calm: ";

/**
 * The share of calls in a phase without faults that each node must answer. The rest allows for a machine that is busy for longer than a
 * lease.
 */
const MIN_SERVED = 0.95;

async function runPhase({ history }: Fixture, name: string): Promise<void> {
  history.startPhase([PAUSE + name]);
  await sleep(PHASE_TIME);
  history.startPhase([]);
}

/** Returns the nodes that did not serve verifications or changes in a phase without faults. */
function outages(history: History, nodes: readonly ClusterNode[]): string[] {
  return history.phases.filter(isCalm).flatMap((phase) => {
    const within = history.calls.filter(({ began, ended }) =>
      [began, ended].every((at) => history.phaseAt(at) === phase),
    );
    return nodes.flatMap(({ name }) =>
      (["verify", "mutation"] as const).flatMap((kind) => {
        const calls = within.filter((call) => call.node === name && call.kind === kind);
        const answered = calls.filter(({ outcome }) => outcome === "answered").length;
        const isServed = answered >= calls.length * MIN_SERVED && (answered > 0 || kind === "mutation");
        return isServed ? [] : [`${phase.faults}: ${name} answered ${answered} of ${calls.length} calls (${kind})`];
      }),
    );
  });
}

function isCalm({ faults: [name] }: Phase): boolean {
  return name?.startsWith(PAUSE) ?? false;
}

async function migrateUnderLoad(fixture: Fixture): Promise<void> {
  const { history, database, ownerUrl } = fixture;
  const before = history.unexpected.length;
  history.startPhase(["migration"]);
  await migrate(CHECKOUT, ownerUrl, new URL(database.url(database.port)).username);
  // Between two statements of migration 0007, release 0.1 cannot import a raw key that has just been deleted.
  const others = history.unexpected.splice(before).filter((text) => !/^import of .*: 500 /.test(text));
  history.unexpected.push(...others);
  await runPhase(fixture, "0.1 on the new schema");
}

/** Checks the versions in the output of `keyhold cluster status`. */
async function compareVersions(fixture: Fixture, upgraded: number): Promise<void> {
  // Without the build, which release 0.1 does not report.
  const shown = (await versions(fixture)).map((version) => version.replace(/\+.*$/, ""));
  const [old, current] = await Promise.all([fixture.oldCheckout, CHECKOUT].map(versionOf));
  const expected = fixture.nodes.map((_, place) => (place < upgraded ? current : old));
  if (shown.sort().join() !== expected.sort().join())
    fixture.failures.push(`cluster status shows the versions ${shown}, not ${expected}`);
}

/** Returns the version of each node with a lease. */
async function versions(fixture: Fixture): Promise<string[]> {
  const { stdout } = await runKeyhold(["cluster", "status", "--json"], commandEnvironment(fixture));
  return JSON.parse(stdout).map(({ version }: { version: string }) => version);
}

async function versionOf(checkout: string): Promise<string> {
  return JSON.parse(await readFile(join(checkout, "package.json"), "utf8")).version;
}

function commandEnvironment({ database }: Fixture): Record<string, string> {
  return { ...ENVIRONMENT, KEYHOLD_DATABASE_URL: database.url(database.port) };
}

async function injectFaults(
  { nodes, database, history, choices }: Fixture,
  faults: readonly FaultName[],
): Promise<void> {
  for (const fault of faults) await runRound({ nodes, database }, history, [fault], choices);
}

/** Returns the program of a release. Release 0.1 has another name for the defect. */
function programOf(release: ReleaseName, { oldCheckout, withoutWait }: Pick<Fixture, "oldCheckout" | "withoutWait">) {
  const hasDefect = release === withoutWait;
  if (release === "current") return currentProgram(hasDefect ? "wait" : null);
  return { checkout: oldCheckout, args: hasDefect ? ["--sabotage=wait"] : [] };
}

/**
 * Kills a node and starts it again with this release. Resolves when all clients are connected to it and the lease of the killed process has
 * expired, until which every change waits.
 */
async function restart(fixture: Fixture, node: ClusterNode, release: ReleaseName): Promise<void> {
  const { history, members } = fixture;
  history.startPhase(["restart"]);
  history.phases.at(-1)?.victims.push(node.name);
  await node.kill();
  node.program = programOf(release, fixture);
  await node.start();
  await eventually(async () => {
    const answers = members.map(({ grpc }) => grpc.verify("none"));
    return (await Promise.all(answers)).every(({ status }) => status === 200);
  });
  await eventually(async () => (await versions(fixture)).length === NODES);
}

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { audit } from "../faults/audit.ts";
import { type Load, startLoad } from "../faults/clients/load.ts";
import { type Member, memberOf } from "../faults/clients/member.ts";
import { type ClusterNode, currentProgram, startCluster } from "../faults/cluster.ts";
import { type Database, startDatabase } from "../faults/database.ts";
import { EXPOSING } from "../faults/fault-injection.ts";
import type { FaultName } from "../faults/faults.ts";
import { History, type Phase } from "../faults/history.ts";
import { judge, type Violation } from "../faults/judge.ts";
import { type Totals, tableOf, totalsOf } from "../faults/report.ts";
import { playRound } from "../faults/round.ts";
import { openProxy } from "../faults/run.ts";
import { eventually, runKeyhold } from "../support/keyhold.ts";
import { type Seeded, seeded } from "../support/seeded.ts";
import { CHECKOUT, COMMAND, migrate } from "./release.ts";

export type ReleaseName = "0.1" | "current";

export interface UpgradeOptions {
  readonly seed: number;
  /** An empty folder that other users may pass through. */
  readonly dir: string;
  /** An installed checkout of release 0.1. */
  readonly oldCheckout: string;
}

export interface Outcome {
  readonly table: string;
  readonly totals: Totals;
  readonly violations: readonly Violation[];
  /** Whatever else must not be. */
  readonly failures: readonly string[];
}

const NODES = 3;
const KEYS_OF_OWNER = 12;

const ENVIRONMENT = {
  KEYHOLD_ROOT_SECRET: "upgrade-root-secret-0123456789-abcdefghijklmn",
  KEYHOLD_CACHE_SIZE: "16",
  KEYHOLD_LOG_LEVEL: "warn",
  // Clients, nodes and PostgreSQL share the processors of one machine.
  KEYHOLD_LEASE_TTL: "5s",
};

/** Milliseconds of load in each state of the upgrade. */
const SPELL = 3_000;

/** Seconds in which a missing wait must be found. */
const EXPOSING_SECONDS = 60;

/** Injected while nodes of both releases run. */
const FAULTS: readonly FaultName[] = [
  "node stopped",
  "node killed",
  "node cut off",
  "feed cut",
  "network slow",
  "PostgreSQL killed",
];

/** Three nodes on one database, under load. */
interface Stage extends UpgradeOptions {
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
export function playUpgrade(options: UpgradeOptions): Promise<Outcome> {
  return onStage({ ...options, withoutWait: null }, async (stage) => {
    await spell(stage, "0.1 alone");
    await migrateUnderLoad(stage);
    const faults = stage.choices.shuffled(FAULTS);
    for (const [place, node] of stage.nodes.entries()) {
      await restart(stage, node, "current");
      await spell(stage, `${place + 1} upgraded`);
      await compareVersions(stage, place + 1);
      if (place + 1 < NODES) await injectFaults(stage, faults.splice(0, FAULTS.length / (NODES - 1)));
    }
    for (const node of stage.nodes.slice(0, 1)) await restart(stage, node, "0.1");
    await spell(stage, "1 back on 0.1");
  });
}

/** Returns a violation that the checker finds when two nodes, of this release, do not wait for the others; null: none. */
export async function expose(options: UpgradeOptions, withoutWait: ReleaseName): Promise<Violation | null> {
  let found: Violation | undefined;
  await onStage({ ...options, withoutWait }, async (stage) => {
    await migrateUnderLoad(stage);
    const upgraded = withoutWait === "current" ? 2 : 1;
    for (const node of stage.nodes.slice(0, upgraded)) await restart(stage, node, "current");
    const start = performance.now();
    const find = () => judge(stage.history).find(({ began }) => began > start);
    for (found = find(); found === undefined && performance.now() < start + EXPOSING_SECONDS * 1000; found = find())
      await injectFaults(stage, [stage.choices.pick(EXPOSING.wait ?? [])]);
  });
  return found ?? null;
}

async function onStage(
  options: UpgradeOptions & Pick<Stage, "withoutWait">,
  work: (stage: Stage) => Promise<void>,
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
    const stage = { ...options, database, ownerUrl, nodes, members, history: new History(), choices, failures: [] };
    await runUnderLoad(stage, work);
    return await conclude(stage);
  } finally {
    await Promise.all(nodes.map((node) => node.close()));
    await database.stop();
  }
}

async function runUnderLoad(stage: Stage, work: (stage: Stage) => Promise<void>): Promise<void> {
  const { history, members, choices, oldCheckout } = stage;
  const load: Load = await startLoad(history, members, choices.fork(), {
    commandEnvironment: commandEnvironment(stage),
    keysOfOwner: KEYS_OF_OWNER,
    commands: [oldCheckout, CHECKOUT].map((checkout) => join(checkout, COMMAND)),
  });
  await work(stage).finally(() => load.stop());
  for (const member of members) await audit(history, member);
  for (const { rest, grpc } of members) {
    rest.close();
    grpc.close();
  }
}

async function conclude({ history, nodes, database, failures }: Stage): Promise<Outcome> {
  const violations = judge(history);
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
      ...nodes.flatMap(({ troubles }) => troubles),
      ...outages(history, nodes),
    ],
  };
}

/** Begins the names of phases without faults. */
const CALM = "calm: ";

/** The part of the calls in a calm phase that each node must answer. The rest is for a machine that is busy for longer than a lease. */
const SERVED_PART = 0.95;

async function spell({ history }: Stage, name: string): Promise<void> {
  history.enter([CALM + name]);
  await sleep(SPELL);
  history.enter([]);
}

/** In each calm phase, the nodes that did not serve verifications or changes. */
function outages(history: History, nodes: readonly ClusterNode[]): string[] {
  return history.phases.filter(isCalm).flatMap((phase) => {
    const within = history.calls.filter(({ began, ended }) =>
      [began, ended].every((at) => history.phaseAt(at) === phase),
    );
    return nodes.flatMap(({ name }) =>
      (["verify", "mutation"] as const).flatMap((kind) => {
        const calls = within.filter((call) => call.node === name && call.kind === kind);
        const answered = calls.filter(({ outcome }) => outcome === "answered").length;
        const isServed = answered >= calls.length * SERVED_PART && (answered > 0 || kind === "mutation");
        return isServed ? [] : [`${phase.faults}: ${name} answered ${answered} of ${calls.length} calls (${kind})`];
      }),
    );
  });
}

function isCalm({ faults: [name] }: Phase): boolean {
  return name?.startsWith(CALM) ?? false;
}

async function migrateUnderLoad(stage: Stage): Promise<void> {
  const { history, database, ownerUrl } = stage;
  const before = history.unexpected.length;
  history.enter(["migration"]);
  await migrate(CHECKOUT, ownerUrl, new URL(database.url(database.port)).username);
  // Between two statements of 0007, release 0.1 cannot import a raw key that was deleted a moment before.
  const others = history.unexpected.splice(before).filter((text) => !/^import of .*: 500 /.test(text));
  history.unexpected.push(...others);
  await spell(stage, "0.1 on the new schema");
}

/** Compares what `keyhold cluster status` shows. */
async function compareVersions(stage: Stage, upgraded: number): Promise<void> {
  const { stdout } = await runKeyhold(["cluster", "status", "--json"], commandEnvironment(stage));
  const shown = JSON.parse(stdout).map(({ version }: { version: string }) => version);
  const [old, current] = await Promise.all([stage.oldCheckout, CHECKOUT].map(versionOf));
  const expected = stage.nodes.map((_, place) => (place < upgraded ? current : old));
  if (shown.sort().join() !== expected.sort().join())
    stage.failures.push(`cluster status shows the versions ${shown}, not ${expected}`);
}

async function versionOf(checkout: string): Promise<string> {
  return JSON.parse(await readFile(join(checkout, "package.json"), "utf8")).version;
}

function commandEnvironment({ database }: Stage): Record<string, string> {
  return { ...ENVIRONMENT, KEYHOLD_DATABASE_URL: database.url(database.port) };
}

async function injectFaults({ nodes, database, history, choices }: Stage, faults: readonly FaultName[]): Promise<void> {
  for (const fault of faults) await playRound({ nodes, database }, history, [fault], choices);
}

/** Returns the program of a release. 0.1 has another name for a defect. */
function programOf(release: ReleaseName, { oldCheckout, withoutWait }: Pick<Stage, "oldCheckout" | "withoutWait">) {
  const hasDefect = release === withoutWait;
  if (release === "current") return currentProgram(hasDefect ? "wait" : null);
  return { checkout: oldCheckout, args: hasDefect ? ["--sabotage=wait"] : [] };
}

/** Kills a node and starts it again with this release. Resolves when all clients are connected to it. */
async function restart(stage: Stage, node: ClusterNode, release: ReleaseName): Promise<void> {
  const { history, members } = stage;
  history.enter(["restart"]);
  history.phases.at(-1)?.victims.push(node.name);
  await node.kill();
  node.program = programOf(release, stage);
  await node.start();
  await eventually(async () => {
    const answers = members.map(({ grpc }) => grpc.verify("none"));
    return (await Promise.all(answers)).every(({ status }) => status === 200);
  });
}

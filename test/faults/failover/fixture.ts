import { setTimeout as sleep } from "node:timers/promises";
import { type Seeded, seeded } from "../../support/seeded.ts";
import { type PostgresServer, startPrimary } from "../../support/standby.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { audit } from "../audit.ts";
import { type Load, startLoad } from "../clients/load.ts";
import { type Member, memberOf } from "../clients/member.ts";
import { type Access, type ClusterNode, startCluster } from "../cluster.ts";
import type { Defect } from "../fault-injection.ts";
import { History } from "../history.ts";
import { keepJournal } from "./journal.ts";
import { PgBouncer } from "./pgbouncer.ts";

/** What the primary waits for before it acknowledges a commit: nothing with `asynchronous`, else its `synchronous_commit`. */
export type Replication = "on" | "remote_apply" | "asynchronous";

export interface StageOptions {
  readonly seed: number;
  /** An empty folder that other users may pass through. */
  readonly dir: string;
  readonly replication: Replication;
  readonly hasPgBouncer: boolean;
  /** More of the environment of the nodes. */
  readonly environment: Readonly<Record<string, string>>;
  readonly defect: Defect | null;
}

/** What a scenario works on. */
export interface Stage {
  readonly dir: string;
  readonly nodes: readonly ClusterNode[];
  readonly members: readonly Member[];
  readonly history: History;
  readonly choices: Seeded;
  readonly pgbouncer: PgBouncer | null;
  readonly environment: Readonly<Record<string, string>>;
  /** The server that is the primary by now; what is acknowledged must be there in the end. */
  primary: PostgresServer;
  standby: PostgresServer;
  /** All that were started. */
  readonly servers: PostgresServer[];
  /** Violations that a step has found by itself. */
  readonly violations: string[];
  /** What the table says besides. */
  readonly notes: string[];
}

const NODES = 3;

/** Owners of keys that send their changes to any node, and to each node alone: one that hangs must not stop the changes on others. */
const OWNERS = { any: 3, each: 3 };
const KEYS_OF_OWNER = 8;

const ENVIRONMENT = {
  KEYHOLD_ROOT_SECRET: "failover-root-secret-0123456789-abcdefghijklm",
  KEYHOLD_CACHE_SIZE: "16",
  KEYHOLD_LOG_LEVEL: "warn",
};

const SETTINGS = { max_connections: "200" };

/** Starts two servers and three nodes, each node with its own proxies for data and for notifications. */
export async function openStage(options: StageOptions): Promise<Stage> {
  const choices = seeded(options.seed);
  const primary = await startPrimary(options.dir, "primary", SETTINGS);
  await keepJournal(primary);
  const standby = await primary.addStandby("standby");
  const { replication } = options;
  if (replication !== "asynchronous")
    await primary.configure({ synchronous_standby_names: "standby", synchronous_commit: replication });
  const pgbouncer = options.hasPgBouncer ? await PgBouncer.start(options.dir, primary) : null;
  const openAccess = async (): Promise<Access> => {
    const data = await TcpProxy.start(`tcp://127.0.0.1:${pgbouncer?.port ?? primary.port}`, { seeded: choices.fork() });
    const feed = await TcpProxy.start(`tcp://127.0.0.1:${primary.port}`, { seeded: choices.fork() });
    const urls = [data, feed].map(({ port }) => primary.url(`127.0.0.1:${port}`));
    const [KEYHOLD_DATABASE_URL = "", KEYHOLD_DATABASE_LISTEN_URL = ""] = urls;
    return { proxies: { data, feed }, environment: { KEYHOLD_DATABASE_URL, KEYHOLD_DATABASE_LISTEN_URL } };
  };
  const environment = { ...ENVIRONMENT, ...options.environment };
  const nodes: ClusterNode[] = [];
  for await (const node of startCluster(openAccess, { ...options, nodes: NODES, environment })) nodes.push(node);
  return {
    ...{ dir: options.dir, nodes, members: nodes.map(memberOf), history: new History(), choices, pgbouncer },
    ...{ environment, primary, standby, servers: [primary, standby], violations: [], notes: [] },
  };
}

export function startStageLoad({ history, members, choices }: Stage): Promise<Load> {
  const any = Array.from({ length: OWNERS.any }, () => members);
  const each = members.flatMap((member) => Array.from({ length: OWNERS.each }, () => [member]));
  return startLoad(history, members, choices.fork(), { owners: [...any, ...each], keysOfOwner: KEYS_OF_OWNER });
}

/** Milliseconds after which a cluster has not recovered. */
export const RECOVERY = 30_000;

/** Milliseconds until all nodes are ready; null: they are not within `limit`. */
export async function untilReady({ nodes }: Pick<Stage, "nodes">, limit: number): Promise<number | null> {
  for (const began = performance.now(); ; await sleep(20)) {
    const ready = await Promise.all(nodes.map((node) => node.isReady()));
    const time = performance.now() - began;
    if (ready.every(Boolean)) return time;
    if (time > limit) return null;
  }
}

/** Compares all records with what was acknowledged, on each node. */
export async function auditAll({ history, members }: Stage): Promise<void> {
  for (const member of members) await audit(history, member);
}

export async function closeStage({ nodes, members, servers, pgbouncer }: Stage): Promise<void> {
  for (const { rest, grpc } of members) {
    rest.close();
    grpc.close();
  }
  await Promise.all(nodes.map((node) => node.close()));
  await pgbouncer?.stop();
  await Promise.all(servers.map((server) => server.close()));
}

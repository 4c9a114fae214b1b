import { setTimeout as sleep } from "node:timers/promises";
import { PgBouncer } from "../../support/pgbouncer.ts";
import { type Seeded, seeded } from "../../support/seeded.ts";
import { type PostgresServer, startPrimary } from "../../support/standby.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { audit } from "../audit.ts";
import { type Load, startLoad } from "../clients/load.ts";
import { closeMembers, type Member, memberOf } from "../clients/member.ts";
import { type Access, type ClusterNode, startCluster } from "../cluster.ts";
import type { Defect } from "../fault-injection.ts";
import { History } from "../history.ts";

/** What the primary waits for before it acknowledges a commit: nothing if `asynchronous`, else its `synchronous_commit`. */
export type Replication = "on" | "remote_apply" | "asynchronous";

export interface FixtureOptions {
  readonly seed: number;
  /** An empty folder that other users may traverse. */
  readonly dir: string;
  readonly replication: Replication;
  readonly hasPgBouncer: boolean;
  /** Additional environment variables of the nodes. */
  readonly environment: Readonly<Record<string, string>>;
  readonly defect: Defect | null;
}

/** The servers, nodes and clients of a scenario. */
export interface Fixture {
  readonly dir: string;
  readonly nodes: readonly ClusterNode[];
  readonly members: readonly Member[];
  readonly history: History;
  readonly choices: Seeded;
  readonly pgbouncer: PgBouncer | null;
  readonly environment: Readonly<Record<string, string>>;
  /** The current primary, which must have all acknowledged changes at the end. */
  primary: PostgresServer;
  standby: PostgresServer;
  /** All servers that were started. */
  readonly servers: PostgresServer[];
  /** Violations that steps have detected. */
  readonly violations: string[];
  /** Notes that are printed below the table. */
  readonly notes: string[];
}

const NODES = 3;

/** Owners of keys that send changes to any node, and to each single node, so that a hanging node does not block changes on the others. */
const OWNERS = { any: 3, each: 3 };
const KEYS_OF_OWNER = 8;

const ENVIRONMENT = {
  KEYHOLD_ROOT_SECRET: "failover-root-secret-0123456789-abcdefghijklm",
  KEYHOLD_CACHE_SIZE: "16",
  KEYHOLD_LOG_LEVEL: "warn",
};

const SETTINGS = { max_connections: "200" };

/** Starts two servers and three nodes, each node with its own proxies for data and for notifications. */
export async function openFixture(options: FixtureOptions): Promise<Fixture> {
  const choices = seeded(options.seed);
  const primary = await startPrimary(options.dir, "primary", SETTINGS);
  const standby = await primary.addStandby("standby");
  const { replication } = options;
  if (replication !== "asynchronous")
    await primary.configure({ synchronous_standby_names: "standby", synchronous_commit: replication });
  const pgbouncer = options.hasPgBouncer ? await PgBouncer.start(options.dir, primary.url()) : null;
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

export function startFixtureLoad({ history, members, choices }: Fixture): Promise<Load> {
  const any = Array.from({ length: OWNERS.any }, () => members);
  const each = members.flatMap((member) => Array.from({ length: OWNERS.each }, () => [member]));
  return startLoad(history, members, choices.fork(), { owners: [...any, ...each], keysOfOwner: KEYS_OF_OWNER });
}

/** Milliseconds after which a cluster counts as not recovered. */
export const RECOVERY_TIMEOUT = 30_000;

/** Returns the milliseconds until all nodes are ready, or null if they are not within `limit`. */
export async function untilReady({ nodes }: Pick<Fixture, "nodes">, limit: number): Promise<number | null> {
  for (const began = performance.now(); ; await sleep(20)) {
    const ready = await Promise.all(nodes.map((node) => node.isReady()));
    const time = performance.now() - began;
    if (ready.every(Boolean)) return time;
    if (time > limit) return null;
  }
}

/** Compares all records on each node with the acknowledged changes. */
export async function auditAll({ history, members }: Fixture): Promise<void> {
  for (const member of members) await audit(history, member);
}

export async function closeFixture({ nodes, members, servers, pgbouncer }: Fixture): Promise<void> {
  closeMembers(members);
  await Promise.all(nodes.map((node) => node.close()));
  await pgbouncer?.stop();
  await Promise.all(servers.map((server) => server.close()));
}

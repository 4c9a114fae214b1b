import { onTestFinished } from "vitest";
import type { FeedSession, MissedChanges } from "../../src/cluster/change-feed.ts";
import type { ChangeNotification } from "../../src/cluster/cluster-session.ts";
import { Membership, type MembershipOptions } from "../../src/cluster/membership.ts";
import { systemClock, systemMonotonic } from "../../src/lib/clock.ts";
import { createReadMissed } from "../../src/postgres/audit/missed-changes.ts";
import { propagating } from "../../src/postgres/cluster/change-committer.ts";
import { createOpenFeed } from "../../src/postgres/cluster/change-feed.ts";
import { createRenewLease } from "../../src/postgres/cluster/leases.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

export interface TestNode {
  readonly membership: Membership;
  /** The proxy of its connection for notifications. */
  readonly proxy: TcpProxy;
  readonly received: ChangeNotification[];
  readonly log: string[];
  /** What it has read in the audit log. */
  readonly missed: MissedChanges[];
  /** How often it has cleared its cache. */
  forgets(): number;
  /** Makes an empty change, and resolves when every node has received all earlier changes. */
  awaitPropagation(): Promise<void>;
}

export const POSITION = { server: "1/1/1", lsn: null, time: 0 };

/** A session with a database that only deletes leases. */
export function feedSession(fence: FeedSession["fence"]): FeedSession {
  const reject = () => Promise.reject(new Error("not expected here"));
  return {
    ...{ id: "a", join: reject, acknowledge: reject, fence, leave: reject, end: () => undefined },
    position: { ...POSITION, promotedAt: null, acceptTime: null, log: null },
  };
}

/** In milliseconds, the minimum of the configuration. */
export const TTL = 1_000;

/** A node on a database that has not joined. Its clock stands still while `frozen` is set. */
export async function newNode(
  url: string,
  name: string,
  more: Partial<Pick<MembershipOptions, "open" | "renew" | "readMissed" | "staleGrace">> & {
    listenUrl?: string;
    ttl?: number;
  } = {},
) {
  const proxy = await TcpProxy.start(more.listenUrl ?? url);
  const pool = new Pool({ url, maxConnections: 1, statementTimeout: 10_000, prepare: true });
  const [received, log]: [ChangeNotification[], string[]] = [[], []];
  const missed: MissedChanges[] = [];
  let forgets = 0;
  const membership = new Membership({
    open: more.open ?? createOpenFeed(proxy.url),
    readMissed: more.readMissed ?? createReadMissed(proxy.url),
    staleGrace: more.staleGrace ?? 0,
    node: { name, version: "1.2.3", ttl: more.ttl ?? TTL },
    renew: more.renew ?? createRenewLease(url),
    clock: systemClock,
    monotonic: systemMonotonic,
    onChange: (change) => received.push(change),
    onMissed: (changes) => missed.push(changes),
    onInvalidateAll: () => forgets++,
    onDisconnect: (reason) => pool.disconnect(reason),
    log: (_level, message, reason) => log.push(`${message}: ${reason?.message}`),
  });
  onTestFinished(async () => {
    await membership.close();
    await pool.close();
    await proxy.close();
  });
  const awaitPropagation = async () => {
    const { propagated } = await propagating(pool, membership.propagation)((sql) => sql`SELECT 1`, {
      isMade: () => true,
    });
    await propagated;
  };
  const node: TestNode = { membership, proxy, received, log, missed, forgets: () => forgets, awaitPropagation };
  return node;
}

/** Nodes that have joined. */
export async function joined(url: string, ...names: string[]): Promise<TestNode[]> {
  const nodes = await Promise.all(names.map((name) => newNode(url, name)));
  for (const { membership } of nodes) await membership.join();
  return nodes;
}

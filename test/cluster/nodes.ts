import { onTestFinished } from "vitest";
import type { Change } from "../../src/cluster/link.ts";
import { Membership } from "../../src/cluster/membership.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { systemMonotonic } from "../../src/lib/monotonic.ts";
import { createOpenFeed } from "../../src/postgres/feed-session.ts";
import { createSendEcho } from "../../src/postgres/nodes.ts";
import { Pool } from "../../src/postgres/pool.ts";
import { type PostgresProxy, startPostgresProxy } from "../support/postgres-proxy.ts";

export interface TestNode {
  readonly membership: Membership;
  /** The road of its connection for news. */
  readonly proxy: PostgresProxy;
  readonly heard: Change[];
  readonly log: string[];
  /** How often it has forgotten everything. */
  forgets(): number;
}

/** Milliseconds: the shortest that the configuration allows. */
export const TTL = 1_000;

/** A node on a database, which has not joined. Its time stands still while `frozen` is set. */
export async function newNode(url: string, name: string, more: { listenUrl?: string; ttl?: number } = {}) {
  const proxy = await startPostgresProxy(more.listenUrl ?? url);
  const pool = new Pool({ url, maxConnections: 1, statementTimeout: 10_000, prepare: true });
  const [heard, log]: [Change[], string[]] = [[], []];
  let forgets = 0;
  const membership = new Membership({
    open: createOpenFeed(proxy.url),
    node: { name, version: "1.2.3", ttl: more.ttl ?? TTL },
    sendEcho: createSendEcho(pool),
    clock: systemClock,
    monotonic: systemMonotonic,
    onChange: (change) => heard.push(change),
    onForget: () => forgets++,
    onAway: () => undefined,
    log: (message, reason) => log.push(`${message}: ${reason?.message}`),
  });
  onTestFinished(async () => {
    await membership.close();
    await pool.close();
    await proxy.close();
  });
  const node: TestNode = { membership, proxy, heard, log, forgets: () => forgets };
  return node;
}

/** Nodes that have joined. */
export async function joined(url: string, ...names: string[]): Promise<TestNode[]> {
  const nodes = await Promise.all(names.map((name) => newNode(url, name)));
  for (const { membership } of nodes) await membership.join();
  return nodes;
}

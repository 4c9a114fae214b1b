import { AuditFeed } from "../audit/feed.ts";
import { integrate, type TreeHead } from "../audit/tree/tree.ts";
import { systemMonotonic } from "../lib/clock.ts";
import { recordExpiry } from "../postgres/audit/expiry.ts";
import type { Jobs } from "./jobs.ts";
import type { Instruments } from "./metrics.ts";
import type { Resources } from "./resources.ts";

/** Milliseconds between two runs of the integration, each of which writes the incomplete tiles again. */
const TREE_INTERVAL = 1_000;

/** Milliseconds for which the changes of this node are gathered: each run of the sequencer is a transaction of its own. */
const DELAY = 100;

/** Creates the feed of this node for watchers of the audit log. */
export function createAuditFeed({ audit: { store }, coherence }: Resources): AuditFeed {
  return new AuditFeed({ store, monotonic: systemMonotonic, onWatch: () => coherence.onAuditLog(null) });
}

/**
 * Starts the job that adds the events of all nodes to the audit log and advances the feed: soon after a change of this node, at once when another
 * node has added events that a watcher waits for, and every second for the changes of programs that are no nodes. Starts the job of the tree.
 * `onEvents` is called when this node has added events.
 */
export function startAuditJob(
  jobs: Jobs,
  feed: AuditFeed,
  { audit, auditTree, coherence }: Resources,
  { audit: meter, denials, limitEvents }: Instruments,
  onEvents: () => void,
): void {
  const run = jobs.start({
    name: "audit_log",
    interval: 1_000,
    failureMessage: "events could not be added to the audit log yet",
    runsAtStop: true,
    run: async () => {
      const denied = denials.take(systemMonotonic());
      if (denied.length > 0) await audit.store.deny(denied);
      for (const exceeded of [limitEvents.own, limitEvents.others])
        await exceeded.record(systemMonotonic(), audit.store.recordExceeded);
      const { assigned, lag } = await audit.store.sequence();
      meter.events += assigned;
      meter.lag = lag;
      if (assigned > 0) onEvents();
      await feed.advance();
    },
  });
  jobs.start({
    name: "audit_tree",
    interval: TREE_INTERVAL,
    failureMessage: "events could not be added to the tree of the audit log yet",
    run: async () => {
      const onHead = ({ size, logSize }: TreeHead) => {
        meter.behind = logSize - size;
      };
      meter.integrated += (await integrate(auditTree, onHead)).added;
      if (await auditTree.store.recordCheckpoint()) coherence.onAuditLog(null);
    },
  });
  let isDelayed = false;
  const runSoon = () => {
    if (isDelayed) return;
    isDelayed = true;
    setTimeout(() => {
      isDelayed = false;
      run();
    }, DELAY).unref();
  };
  coherence.onAuditLog = (size) => {
    if (size === null) runSoon();
    else if (feed.isBehind(size)) run();
  };
}

/** Starts the job that records which keys expire soon or have expired, at these times before the expiry. */
export function startExpiryJob(
  jobs: Jobs,
  warnings: readonly number[],
  { database, coherence }: Resources,
  { expiry }: Instruments,
): void {
  jobs.start({
    name: "expiry",
    interval: 1_000,
    failureMessage: "expiries of keys could not be recorded yet",
    run: async () => {
      const { expiring, expired, lag } = await recordExpiry(database, warnings);
      expiry.events.expiring += expiring;
      expiry.events.expired += expired;
      expiry.lag = lag;
      if (expiring + expired > 0) coherence.onAuditLog(null);
    },
  });
}

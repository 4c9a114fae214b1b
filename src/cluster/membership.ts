import { setTimeout as sleep } from "node:timers/promises";
import { raceSignal } from "../lib/race-signal.ts";
import { toError } from "../lib/to-error.ts";
import { withTimeout } from "../lib/with-timeout.ts";
import { unconfirmed } from "./barriers.ts";
import {
  type LogPosition,
  type MissedChanges,
  type NodeIdentity,
  OtherServerError,
  type ReadMissed,
} from "./change-feed.ts";
import { REPORTED_OFFSET } from "./clock-offset.ts";
import { ClusterSession, type ClusterSessionOptions } from "./cluster-session.ts";
import { DatabaseHistory, DatabaseRejectedError } from "./history.ts";
import { Lease, USED_PART } from "./lease.ts";
import { createPropagation, type Propagation } from "./propagation.ts";
import { delayAfter, isTransient, LeaseGoneError, noLease, otherDatabase } from "./renewal-errors.ts";
import { LeaseRenewals, within } from "./renewals.ts";
import type { ServerId, ServerObserver } from "./server-id.ts";

export interface MembershipOptions extends ClusterSessionOptions {
  readonly node: NodeIdentity;
  /** Milliseconds after the lease during which cached verdicts may be used (`Lease`). */
  readonly staleGrace: number;
  readonly readMissed: ReadMissed;
  /** Called with the changes that were missed without a session, before cached entries are used again. */
  readonly onMissed: (changes: MissedChanges) => void;
  /** Called when unknown changes may have been missed: everything cached must be invalidated, reads in flight included. */
  readonly onInvalidateAll: () => void;
  /** Called when the connections for keys must be closed: the database is unreachable, or the server is another than before. */
  readonly onDisconnect: (reason: Error) => void;
  readonly log: MembershipLog;
}

export type MembershipLog = (level: "info" | "warn" | "error", message: string, reason?: Error) => void;

/** Renewals per TTL. */
const RENEWALS = 3;

/** Timeout of the first session and lease in milliseconds; without them the server does not start. */
const FIRST_TIMEOUT = 10_000;

/** Timeout for deleting the lease on leave, in milliseconds. */
const LEAVE_TIMEOUT = 1_000;

/** Milliseconds that a change waits for a session. */
const SESSION_TIMEOUT = 5_000;

/**
 * This node as a member of the cluster (docs/consistency.md). It receives every change on one connection, the feed, renews its lease on
 * others, and extends it when the echo arrives on the feed. When the feed is lost, it starts again, and reads what it has missed in the audit log.
 */
export class Membership implements ServerObserver {
  readonly lease: Lease;
  readonly propagation: Propagation;
  readonly #options: MembershipOptions;
  readonly #over = new AbortController();
  readonly #history = new DatabaseHistory();
  readonly #renewals: LeaseRenewals;
  #session: ClusterSession | null = null;
  /** Changes that wait for the next session; called with false if there will be none. A promise would keep those that give up. */
  readonly #unconnected = new Set<(isConnected: boolean) => void>();
  /** The last lease that this node requested. */
  #leaseId: string | null = null;
  /** The server of the last session that had a lease. */
  #lastServer: ServerId | null = null;
  /** Cached entries reflect every change before it in the audit log of that server. Null if unknown. */
  #logPosition: LogPosition | null = null;
  #unavailableReason: Error | null = null;
  #running: Promise<void> | undefined;
  /** Whether the offset of the clock was reported. */
  #isClockOff = false;

  constructor(options: MembershipOptions) {
    const { monotonic, clock, staleGrace, node } = options;
    this.#options = options;
    this.lease = new Lease(monotonic, clock, staleGrace);
    this.#renewals = new LeaseRenewals(this.lease, node.ttl);
    this.propagation = createPropagation({
      monotonic,
      ttl: node.ttl,
      session: () => this.#session,
      whenConnected: () => this.#whenConnected(),
      onOtherServer: (session, error) => this.#leaveServer(session, error),
      onPosition: (position) => this.#history.note(position),
    });
  }

  /** Why the database is unreachable, by the last attempt; null if it is reachable. */
  get unavailableReason(): Error | null {
    return this.#unavailableReason;
  }

  get session(): ClusterSession | null {
    return this.#session;
  }

  /** Number of nodes that may verify; null without a lease, and while others with a lease may not know of this node. */
  get nodes(): number | null {
    return this.lease.isFresh ? (this.#session?.nodes ?? null) : null;
  }

  /** The server whose changes this node receives; null without a session. */
  get server(): ServerId | null {
    return this.#session?.server ?? null;
  }

  /** Acquires a lease and keeps it until `leave`. Rejects if the first one cannot be acquired. */
  async join(): Promise<void> {
    this.#renewals.isActive = true;
    const session = await this.#connect(FIRST_TIMEOUT);
    this.#running = this.#run(session);
  }

  /**
   * Resolves when a renewal that was sent after this call was granted: this node has received, or will read, every change that returned
   * before the call.
   *
   * @throws `DATABASE_UNAVAILABLE`
   */
  renewed(): Promise<void> {
    if (this.#unavailableReason !== null) return Promise.reject(noLease(this.#unavailableReason));
    if (!this.#renewals.isActive) return Promise.reject(noLease());
    return this.#renewals.wait();
  }

  /** Ends the session when a statement was answered by another server. No-op for a process that is no node, such as a command. */
  requireServer(server: ServerId, expected: ServerId | null): void {
    if (server === expected || (expected === null && !this.#renewals.isActive)) return;
    // Without a session when the statement was sent, its server cannot be verified.
    if (expected === null) throw noLease();
    const error = new OtherServerError(server, expected);
    if (this.#session !== null && this.#session.server !== server) this.#leaveServer(this.#session, error);
    throw noLease(error);
  }

  /** Ends the lease at once. Changes in flight are still confirmed. If the database does not answer, its row expires. */
  async leave(): Promise<void> {
    this.#renewals.stop();
    const left = this.#session?.feed.leave().catch(() => undefined);
    await withTimeout(Promise.resolve(left), LEAVE_TIMEOUT, () => undefined);
  }

  async close(): Promise<void> {
    this.#renewals.stop();
    this.#over.abort();
    this.#session?.feed.end();
    this.#endWaits(false);
    await this.#running;
  }

  /** A process that never joined, such as a command, opens a session when it first needs one. */
  async #whenConnected(): Promise<void> {
    if (this.#session !== null) return;
    if (this.#over.signal.aborted) throw unconfirmed();
    this.#running ??= this.#run(undefined);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#unconnected.add(resolve);
    const isConnected = await withTimeout(promise, SESSION_TIMEOUT, () => !this.#unconnected.delete(resolve));
    if (!isConnected) throw unconfirmed(this.#unavailableReason ?? undefined);
  }

  #endWaits(isConnected: boolean): void {
    for (const resolve of this.#unconnected) resolve(isConnected);
    this.#unconnected.clear();
  }

  /** Keeps a session until `close`. Never rejects. */
  async #run(first: ClusterSession | undefined): Promise<void> {
    const { signal } = this.#over;
    let session = first;
    for (let failures = 0; !signal.aborted; ) {
      try {
        session ??= await this.#connect(this.#options.node.ttl / 2);
        failures = 0;
        await this.#keep(session);
        session = undefined;
      } catch (error) {
        if (signal.aborted) return;
        const reason = toError(error);
        this.#setUnavailable(reason);
        await sleep(delayAfter(reason, ++failures), undefined, { signal }).catch(() => undefined);
      }
    }
  }

  /** Opens a session, and acquires a lease if this process is a node. Abandons an attempt that hangs. */
  async #connect(timeout: number): Promise<ClusterSession> {
    const session = await ClusterSession.open(this.#options, timeout);
    try {
      const { position } = session.feed;
      const note = this.#history.check(position);
      if (note !== null) this.#options.log(note.level, note.message);
      this.#history.note({ ...position, lsn: null });
      if (this.#renewals.isActive) await this.#join(session, timeout);
      else this.#begin(session);
      // A concurrent `close` has no session to end yet and waits for this one.
      this.#over.signal.throwIfAborted();
    } catch (error) {
      session.feed.end();
      throw error;
    }
    return session;
  }

  /** The lease is usable from its first renewal on. */
  async #join(session: ClusterSession, timeout: number): Promise<void> {
    const { node, onMissed, onInvalidateAll, onDisconnect } = this.#options;
    const earlier = this.#leaseId;
    this.#leaseId = session.feed.id;
    await within(session, session.join(node, earlier), timeout);
    const missed = await this.#readMissed(session, timeout).catch(() => null);
    const joined = this.#renewals.renew(session, timeout, {
      onGranted: (position) => {
        this.#history.note(position);
        // Connections to the previous server may still be open and would answer with its state.
        if (this.#lastServer !== null && this.#lastServer !== session.server)
          onDisconnect(new Error("the database restarted or failed over"));
        this.#lastServer = session.server;
        if (missed === null) onInvalidateAll();
        else onMissed(missed);
        this.#begin(session);
      },
    });
    await joined.catch((error: unknown) => {
      throw error instanceof LeaseGoneError ? otherDatabase() : error;
    });
    if (!this.#renewals.isActive) await session.feed.leave();
  }

  /**
   * Returns what has changed since the last session. Later changes are notified in this one. Null if it is unknown, and if the server is
   * another one, which may lack a change that a cached entry has.
   */
  #readMissed(session: ClusterSession, timeout: number): Promise<MissedChanges | null> {
    if (this.#logPosition === null || session.server !== this.#lastServer) return Promise.resolve(null);
    return within(session, this.#options.readMissed(this.#logPosition, session.server), timeout);
  }

  #begin(session: ClusterSession): void {
    this.#session = session;
    this.#setUnavailable(null);
    this.#endWaits(true);
    session.ended.addEventListener("abort", () => this.#lose(session.ended.reason));
    if (session.ended.aborted) this.#lose(session.ended.reason);
  }

  /** Renews the lease until the session ends. A slow renewal is followed by the next one at once, because it has used up its lease. */
  async #keep(session: ClusterSession): Promise<void> {
    const { node, monotonic } = this.#options;
    const interval = node.ttl / RENEWALS;
    let failures = 0;
    let pause = interval;
    while (!session.ended.aborted) {
      try {
        await raceSignal(session.ended, this.#renewals.pause(pause));
        const sent = monotonic();
        if (this.#renewals.isActive) await this.#renew(session);
        pause = Math.max(0, sent + interval - monotonic());
        failures = 0;
      } catch (error) {
        const reason = toError(error);
        if (!isTransient(reason)) session.feed.end(reason);
        else {
          // While the lease lasts, another renewal may still succeed in time, and open connections may work.
          if (!this.lease.isFresh) this.#setUnavailable(reason);
          pause = delayAfter(reason, ++failures);
        }
      }
    }
  }

  /**
   * Renews the lease once. Keeps waiting for a database that does not answer, because another renewal would not cancel the first, while
   * calls fail at once.
   */
  async #renew(session: ClusterSession): Promise<void> {
    const limit = this.#options.node.ttl * (USED_PART - 1 / RENEWALS);
    await this.#renewals.renew(session, limit, {
      onLate: (error) => this.#setUnavailable(error),
      onGranted: (position) => {
        this.#history.note(position);
        this.#setUnavailable(null);
        this.#reportClock();
      },
    });
  }

  /** Logs when the offset of the clock begins and ceases to be large. */
  #reportClock(): void {
    const offset = this.#session?.clockOffset.least ?? 0;
    const isOff = Math.abs(offset) > REPORTED_OFFSET;
    if (isOff === this.#isClockOff) return;
    this.#isClockOff = isOff;
    const side = offset > 0 ? "ahead of" : "behind";
    const difference = new Error(`the clocks differ by at least ${(Math.abs(offset) / 1000).toFixed(1)} s`);
    if (isOff) this.#options.log("warn", `this server's clock is ${side} the database clock`, difference);
    else this.#options.log("info", "this server's clock agrees with the database clock");
  }

  /** Statements are answered by another server than that of this session, so its notifications are worthless. */
  #leaveServer(session: ClusterSession, error: OtherServerError): void {
    session.feed.end(error);
    this.#options.onDisconnect(error);
  }

  #lose(reason: Error): void {
    this.#logPosition = this.#session?.logPosition ?? null;
    this.#history.noteLog(this.#logPosition);
    this.#session = null;
    this.lease.end();
    if (this.#over.signal.aborted) return;
    this.#options.log("warn", "the connection to the change feed was lost", reason);
    // Without a lease, cached verdicts are used only in a grace, and are marked as stale.
    if (reason instanceof OtherServerError) this.#options.onInvalidateAll();
  }

  #setUnavailable(reason: Error | null): void {
    const before = this.#unavailableReason;
    this.#unavailableReason = reason;
    if (reason === null) return;
    this.#renewals.rejectWaiting(reason);
    if (before === null || before.message !== reason.message) {
      if (reason instanceof DatabaseRejectedError) this.#options.log("error", reason.message, reason);
      else this.#options.log("warn", "the database is unreachable", reason);
    }
    if (before === null) this.#options.onDisconnect(reason);
  }
}

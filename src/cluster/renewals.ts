import { setTimeout as sleep } from "node:timers/promises";
import { raceSignal } from "../lib/race-signal.ts";
import { toError } from "../lib/to-error.ts";
import { withTimeout } from "../lib/with-timeout.ts";
import type { ClusterSession } from "./cluster-session.ts";
import type { Lease } from "./lease.ts";
import { LateError, NoEchoError, NotReplicatedError, noLease } from "./renewal-errors.ts";
import type { DatabasePosition } from "./server-id.ts";

export interface RenewalListener {
  /** Called when the answer is late; it is then awaited without a time limit. Without this, the renewal fails. */
  readonly onLate?: (error: Error) => void;
  /** Called before the lease is extended. */
  readonly onGranted: (position: DatabasePosition) => void;
}

/** Renews the lease of this node, and answers the calls that wait for a renewal that is sent after they arrived. */
export class LeaseRenewals {
  readonly #lease: Lease;
  /** Duration of the lease, in milliseconds. */
  readonly #ttl: number;
  /** Whether this process is a node: it has joined and has not left. */
  isActive = false;
  #waiters: PromiseWithResolvers<void>[] = [];
  /** Called when a call starts to wait. */
  #wake: () => void = () => undefined;

  constructor(lease: Lease, ttl: number) {
    this.#lease = lease;
    this.#ttl = ttl;
  }

  /** Ends the lease. */
  stop(): void {
    this.isActive = false;
    this.#lease.end();
    this.rejectWaiting();
  }

  /** Resolves when the next renewal is granted. @throws `DATABASE_UNAVAILABLE` */
  wait(): Promise<void> {
    const waiter = Promise.withResolvers<void>();
    this.#waiters.push(waiter);
    this.#wake();
    return waiter.promise;
  }

  rejectWaiting(reason?: Error): void {
    for (const { reject } of this.#waiters.splice(0)) reject(noLease(reason));
  }

  /** Resolves after `milliseconds`, or as soon as a call waits. */
  async pause(milliseconds: number): Promise<void> {
    if (this.#waiters.length > 0) return;
    const asked = new AbortController();
    this.#wake = () => asked.abort();
    await sleep(milliseconds, undefined, { signal: asked.signal, ref: false }).catch(() => undefined);
    this.#wake = () => undefined;
  }

  /**
   * Sends a renewal, and extends the lease when it is granted. Answers the calls that were waiting when it was sent. `limit` is the time
   * in milliseconds for the answer, and then for its echo.
   */
  async renew(session: ClusterSession, limit: number, { onLate, onGranted }: RenewalListener): Promise<void> {
    const waiters = this.#waiters.splice(0);
    const rejectWaiters = (reason: unknown) => {
      for (const { reject } of waiters) reject(noLease(toError(reason)));
    };
    const sent = this.#lease.moment;
    try {
      const answer = session.renew();
      const renewed = await within(session, answer, limit).catch((error: unknown) => {
        if (!(error instanceof LateError) || onLate === undefined) throw error;
        rejectWaiters(error);
        onLate(error);
        return raceSignal(session.ended, answer);
      });
      if (!renewed.isReplicated)
        throw new NotReplicatedError("the synchronous standby did not confirm the lease renewal");
      await within(session, renewed.echo, limit).catch((error: unknown) => {
        if (!(error instanceof LateError)) throw error;
        throw new NoEchoError(
          "DATABASE_UNAVAILABLE",
          "no notifications arrive from the database: KEYHOLD_DATABASE_LISTEN_URL must connect directly to the database, not through a transaction pooler",
        );
      });
      onGranted(renewed.position);
      if (this.isActive) this.#lease.extend(sent, this.#ttl);
      for (const { resolve } of waiters) resolve();
    } catch (error) {
      rejectWaiters(error);
      if (this.isActive) throw error;
    }
  }
}

/** Rejects if the session ends, or with `LateError` if the work takes longer. */
export function within<T>(session: ClusterSession, work: Promise<T>, limit: number): Promise<T> {
  return raceSignal(
    session.ended,
    withTimeout(work, limit, () => {
      throw new LateError("the database did not respond in time");
    }),
  );
}

import { KeyholdError } from "../domain/errors.ts";
import type { Monotonic } from "../lib/clock.ts";
import type { BarrierAnswer, FeedSession, LeaseRow, Mark } from "./change-feed.ts";
import type { PeerLeases } from "./peer-leases.ts";

/** A barrier that some nodes have not acknowledged. */
export interface Barrier {
  readonly mark: Mark;
  /** The leases that have acknowledged it. */
  readonly acknowledged: Set<string>;
  /** Leases that have not; null until the barrier was sent and the leases are known. */
  missing: Set<string> | null;
  /** When the leases became known: see `Moment`. */
  answered: Moment;
  /** When the wait fails, by the monotonic clock. */
  deadline: number;
  readonly done: PromiseWithResolvers<void>;
}

/**
 * Logical clock that orders statements on different connections: a statement that is sent at a later moment than another was answered has
 * a later snapshot.
 */
export type Moment = number;

/** Interval in milliseconds between checks whether a node that does not acknowledge has left. */
const LOOK_INTERVAL = 250;

/** Milliseconds that a change waits beyond the longest lease among the nodes it waits for. */
const EXTRA_WAIT = 10_000;

/**
 * The barriers of one session. Notifications are delivered in commit order, so a node receives everything that was committed before a
 * barrier before the barrier itself: its acknowledgement covers all of it. Each barrier is sent on the connection that made its change,
 * so the numbers of two barriers imply no order.
 */
export class Barriers {
  readonly #session: FeedSession;
  readonly #peers: PeerLeases;
  readonly #monotonic: Monotonic;
  readonly #open = new Map<number, Barrier>();
  #number = 0;
  #moment: Moment = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(session: FeedSession, peers: PeerLeases, monotonic: Monotonic) {
    this.#session = session;
    this.#peers = peers;
    this.#monotonic = monotonic;
  }

  /** Returns the moment of a statement that is sent now. */
  now(): Moment {
    return ++this.#moment;
  }

  /** Creates a barrier, which the caller sends and then passes to `wait` or `abandon`. */
  open(): Barrier {
    const barrier: Barrier = {
      mark: { from: this.#session.id, number: ++this.#number },
      acknowledged: new Set(),
      missing: null,
      answered: Number.POSITIVE_INFINITY,
      deadline: Number.POSITIVE_INFINITY,
      done: Promise.withResolvers(),
    };
    barrier.done.promise.catch(() => undefined);
    this.#open.set(barrier.mark.number, barrier);
    return barrier;
  }

  abandon({ mark }: Barrier): void {
    this.#open.delete(mark.number);
  }

  /**
   * Resolves when no node answers from a state before the barrier: each node that held a lease has acknowledged it or lost its lease.
   *
   * @throws `CHANGE_UNCONFIRMED` when a node neither acknowledges nor can be fenced; the reason of the session's end if it ends.
   */
  wait(barrier: Barrier, { leases }: BarrierAnswer): Promise<void> {
    this.#peers.observe(leases, this.#monotonic());
    barrier.answered = this.now();
    const missing = leases.filter(({ leaseId }) => !barrier.acknowledged.has(leaseId));
    barrier.missing = new Set(missing.map(({ leaseId }) => leaseId));
    barrier.deadline = this.#monotonic() + EXTRA_WAIT + Math.max(0, ...missing.map(({ ttl }) => ttl));
    this.#release(barrier);
    if (barrier.missing.size > 0) this.#watch();
    return barrier.done.promise;
  }

  acknowledged({ from, number }: Mark): void {
    const barrier = this.#open.get(number);
    if (barrier === undefined) return;
    barrier.acknowledged.add(from);
    barrier.missing?.delete(from);
    this.#release(barrier);
  }

  /**
   * Records the leases of the other nodes as read by a statement that was sent at `sent`. A lease that a barrier found earlier and that
   * is no longer among them has ended for good.
   */
  observe(leases: readonly LeaseRow[], sent: Moment): void {
    this.#peers.observe(leases, this.#monotonic());
    const there = new Set(leases.map(({ leaseId }) => leaseId));
    for (const barrier of this.#open.values()) {
      if (barrier.answered > sent) continue;
      for (const leaseId of barrier.missing ?? []) if (!there.has(leaseId)) barrier.missing?.delete(leaseId);
      this.#release(barrier);
    }
  }

  /** Rejects all waits because the session has ended; the callers repeat them in the next one. */
  fail(reason: Error): void {
    clearTimeout(this.#timer);
    for (const { done } of this.#open.values()) done.reject(reason);
    this.#open.clear();
  }

  /** Deletes overdue leases. */
  async fence(): Promise<void> {
    const sent = this.now();
    this.observe(await this.#session.fence(this.#peers.overdue(this.#monotonic())), sent);
  }

  #release(barrier: Barrier): void {
    if (barrier.missing?.size !== 0) return;
    this.#open.delete(barrier.mark.number);
    barrier.done.resolve();
  }

  #missing(): string[] {
    return [...this.#open.values()].flatMap(({ missing }) => [...(missing ?? [])]);
  }

  /** Checks the nodes that have not acknowledged, while there are waits. */
  #watch(): void {
    if (this.#timer !== undefined) return;
    const nextEnd = this.#peers.nextEnd(this.#missing());
    const delay = Math.min(LOOK_INTERVAL, Math.max(0, (nextEnd ?? 0) - this.#monotonic()));
    this.#timer = setTimeout(() => void this.#look(), Math.ceil(delay));
  }

  async #look(): Promise<void> {
    const now = this.#monotonic();
    if (this.#missing().length > 0) {
      // A failure of the session rejects the waits through `fail`.
      await this.fence().catch(() => undefined);
    }
    this.#timer = undefined;
    this.#expire(now);
    if (this.#missing().length > 0) this.#watch();
  }

  #expire(now: number): void {
    for (const barrier of this.#open.values()) {
      if (barrier.deadline > now) continue;
      this.abandon(barrier);
      barrier.done.reject(unconfirmed());
    }
  }
}

export function unconfirmed(cause?: unknown): KeyholdError {
  const message =
    "the change is committed, but not every server has confirmed it; retry, with the same request_id if one was set";
  return new KeyholdError("CHANGE_UNCONFIRMED", message, { cause });
}

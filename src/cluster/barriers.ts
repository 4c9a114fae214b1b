import { KeyholdError } from "../domain/errors.ts";
import type { Monotonic } from "../lib/clock.ts";
import type { BarrierAnswer, FeedSession, LeaseRow, Mark } from "./change-feed.ts";
import type { PeerLeases } from "./peer-leases.ts";

/** A barrier that not every node has acknowledged yet. */
export interface Barrier {
  readonly mark: Mark;
  /** The leases that have acknowledged it. */
  readonly acknowledged: Set<string>;
  /** Those that have not; null until the barrier was sent, and the leases are known. */
  missing: Set<string> | null;
  /** When that was: see `Moment`. */
  answered: Moment;
  /** When the caller is told that it did not work, by the monotonic clock. */
  deadline: number;
  readonly done: PromiseWithResolvers<void>;
}

/**
 * Orders statements that go over different connections: one that is sent at a later moment than another was answered has a later
 * snapshot.
 */
export type Moment = number;

/** How often to look whether a node that does not answer has left, in milliseconds. */
const LOOK_INTERVAL = 250;

/** What a mutation waits beyond the longest lease that it meets, in milliseconds. */
const PATIENCE = 10_000;

/**
 * The barriers of one session. What was committed before one was sent, every node has heard of before it hears the barrier, since
 * notifications come in the order of the commits: its acknowledgement is one of all that came before. Each is sent over the connection
 * that made a change, so that nothing follows from the numbers of two.
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

  /** The moment of a statement that is sent now. */
  now(): Moment {
    return ++this.#moment;
  }

  /** Makes a barrier that is to be sent, and then either waited for or abandoned. */
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
   * Resolves when no node answers by anything from before the barrier, which was sent: each that has a lease has acknowledged it, or has
   * its lease no longer.
   *
   * @throws `CHANGE_UNCONFIRMED` when a node neither acknowledges nor can be fenced; what ended the session, when that did.
   */
  wait(barrier: Barrier, { leases }: BarrierAnswer): Promise<void> {
    this.#peers.observe(leases, this.#monotonic());
    barrier.answered = this.now();
    const missing = leases.filter(({ leaseId }) => !barrier.acknowledged.has(leaseId));
    barrier.missing = new Set(missing.map(({ leaseId }) => leaseId));
    barrier.deadline = this.#monotonic() + PATIENCE + Math.max(0, ...missing.map(({ ttl }) => ttl));
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
   * The leases of the others that there were after this moment: one that a barrier was answered with before it, and that is not among
   * them, will never be again.
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

  /** The session is over: whoever waits has to ask the next one. */
  fail(reason: Error): void {
    clearTimeout(this.#timer);
    for (const { done } of this.#open.values()) done.reject(reason);
    this.#open.clear();
  }

  /** Takes away the leases that are overdue. */
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

  /** Looks after those that do not answer, as long as anyone waits. */
  #watch(): void {
    if (this.#timer !== undefined) return;
    const nextEnd = this.#peers.nextEnd(this.#missing());
    const delay = Math.min(LOOK_INTERVAL, Math.max(0, (nextEnd ?? 0) - this.#monotonic()));
    this.#timer = setTimeout(() => void this.#look(), Math.ceil(delay));
  }

  async #look(): Promise<void> {
    const now = this.#monotonic();
    if (this.#missing().length > 0) {
      // A session that fails here fails for those who wait too, by `fail`.
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
  const message = "the change is made, but not every server has confirmed it: repeat the call";
  return new KeyholdError("CHANGE_UNCONFIRMED", message, { cause });
}

import { KeyholdError } from "../errors.ts";
import type { Monotonic } from "../lib/monotonic.ts";
import type { FeedSession, LeaseRow, Mark } from "./feed.ts";
import type { Peers } from "./peers.ts";

/** A barrier that not every node has acknowledged yet. */
interface Waiting {
  readonly number: number;
  readonly leaseIds: Set<string>;
  /** When the caller is told that it did not work, by the monotonic clock. */
  readonly deadline: number;
  readonly done: PromiseWithResolvers<void>;
}

/** How often to look whether a node that does not answer has left, in milliseconds. */
const LOOK_INTERVAL = 250;

/** What a mutation waits beyond the longest lease that it meets, in milliseconds. */
const PATIENCE = 10_000;

/**
 * The barriers of one session. What was committed before one was sent, every node has heard of before it hears the barrier, since
 * notifications come in the order of the commits: its acknowledgement is one of all that came before.
 */
export class Barriers {
  readonly #session: FeedSession;
  readonly #peers: Peers;
  readonly #monotonic: Monotonic;
  readonly #waiting = new Set<Waiting>();
  /** The last barrier that each lease has acknowledged. */
  readonly #acknowledged = new Map<string, number>();
  #number = 0;
  #sending: Promise<unknown> = Promise.resolve();
  #next: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(session: FeedSession, peers: Peers, monotonic: Monotonic) {
    this.#session = session;
    this.#peers = peers;
    this.#monotonic = monotonic;
  }

  /**
   * Resolves when no node answers by anything from before this call: each that has a lease has acknowledged a barrier that was sent
   * after the call, or has its lease no longer. Those who ask while one is being sent share the next.
   *
   * @throws `CHANGE_UNCONFIRMED` when a node neither acknowledges nor can be fenced; what ended the session, when that did.
   */
  settle(): Promise<void> {
    this.#next ??= this.#sending.then(() => {
      this.#next = undefined;
      return this.#send();
    });
    return this.#next;
  }

  hear({ from, number }: Mark): void {
    this.#acknowledged.set(from, number);
    for (const waiting of this.#waiting) {
      if (waiting.number > number) continue;
      waiting.leaseIds.delete(from);
      this.#release(waiting);
    }
  }

  /** The leases that there are now: one that is not among them will never be again. */
  observe(leases: readonly LeaseRow[]): void {
    this.#peers.observe(leases, this.#monotonic());
    const there = new Set(leases.map(({ leaseId }) => leaseId));
    for (const leaseId of this.#acknowledged.keys()) if (!there.has(leaseId)) this.#acknowledged.delete(leaseId);
    for (const waiting of this.#waiting) {
      for (const leaseId of waiting.leaseIds) if (!there.has(leaseId)) waiting.leaseIds.delete(leaseId);
      this.#release(waiting);
    }
  }

  /** The session is over: whoever waits has to ask the next one. */
  fail(reason: Error): void {
    clearTimeout(this.#timer);
    for (const { done } of this.#waiting) done.reject(reason);
    this.#waiting.clear();
  }

  async #send(): Promise<void> {
    const number = ++this.#number;
    const sent = this.#session.barrier(number);
    this.#sending = sent.catch(() => undefined);
    const leases = await sent;
    this.observe(leases);
    const missing = leases.filter(({ leaseId }) => (this.#acknowledged.get(leaseId) ?? 0) < number);
    if (missing.length > 0) await this.#wait(number, missing);
  }

  #wait(number: number, leases: readonly LeaseRow[]): Promise<void> {
    const leaseIds = new Set(leases.map(({ leaseId }) => leaseId));
    const deadline = this.#monotonic() + PATIENCE + Math.max(...leases.map(({ ttl }) => ttl));
    const done = Promise.withResolvers<void>();
    this.#waiting.add({ number, leaseIds, deadline, done });
    this.#watch();
    return done.promise;
  }

  #release(waiting: Waiting): void {
    if (waiting.leaseIds.size > 0) return;
    this.#waiting.delete(waiting);
    waiting.done.resolve();
  }

  /** Looks after those that do not answer, as long as anyone waits. */
  #watch(): void {
    if (this.#timer !== undefined) return;
    const nextEnd = this.#peers.nextEnd([...this.#waiting].flatMap(({ leaseIds }) => [...leaseIds]));
    const delay = Math.min(LOOK_INTERVAL, Math.max(0, (nextEnd ?? 0) - this.#monotonic()));
    this.#timer = setTimeout(() => void this.#look(), Math.ceil(delay));
  }

  async #look(): Promise<void> {
    const now = this.#monotonic();
    if (this.#waiting.size > 0) {
      // A session that fails here fails for those who wait too, by `fail`.
      const leases = await this.#session.fence(this.#peers.overdue(now)).catch(() => undefined);
      if (leases !== undefined) this.observe(leases);
    }
    this.#timer = undefined;
    this.#expire(now);
    if (this.#waiting.size > 0) this.#watch();
  }

  #expire(now: number): void {
    for (const waiting of this.#waiting) {
      if (waiting.deadline > now) continue;
      this.#waiting.delete(waiting);
      waiting.done.reject(unconfirmed());
    }
  }
}

export function unconfirmed(cause?: unknown): KeyholdError {
  const message = "the change is made, but not every server has confirmed it: repeat the call";
  return new KeyholdError("CHANGE_UNCONFIRMED", message, { cause });
}

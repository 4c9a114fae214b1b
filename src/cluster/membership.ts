import { setTimeout as sleep } from "node:timers/promises";
import { KeyholdError } from "../errors.ts";
import type { Clock } from "../lib/clock.ts";
import type { Monotonic } from "../lib/monotonic.ts";
import { toError } from "../lib/to-error.ts";
import { unconfirmed } from "./barriers.ts";
import type { NodeIdentity, OpenFeed, SendEcho } from "./feed.ts";
import { Lease, USED_PART } from "./lease.ts";
import { type Change, Link } from "./link.ts";

export interface MembershipOptions {
  readonly open: OpenFeed;
  readonly node: NodeIdentity;
  readonly sendEcho: SendEcho;
  readonly clock: Clock;
  readonly monotonic: Monotonic;
  /** Told of what changed anywhere. */
  readonly onChange: (change: Change) => void;
  /** Told when anything may have changed unheard: all that was read before is to be forgotten, reads under way included. */
  readonly onForget: () => void;
  /** Called when the database becomes unreachable, with the reason, and with null when it is reachable again. */
  readonly onAway: (reason: Error | null) => void;
  readonly log: (message: string, reason?: Error) => void;
}

/** Renewals in the time of a lease. */
const RENEWALS = 3;

/** How long the first session and lease may take, in milliseconds: the server starts with them or not at all. */
const FIRST_TIMEOUT = 10_000;

/** How long to wait for the database to know that the lease is given up, in milliseconds. */
const LEAVE_TIMEOUT = 1_000;

/** Milliseconds between attempts to reach the database again: the first comes at once. */
const PAUSES: readonly number[] = [0, 20, 50, 100, 200];

/** How long a change waits for a session, and how long it goes on asking when one after the other is lost, in milliseconds. */
const SESSION_PATIENCE = 5_000;
const SESSIONS_PATIENCE = 15_000;

/**
 * This node among the others (docs/consistency.md). It hears of every change on one connection, holds its lease by it, and by it
 * asks the others whether they have heard. When that connection is lost, so is all that was remembered, and it begins again.
 */
export class Membership {
  readonly lease: Lease;
  readonly #options: MembershipOptions;
  readonly #over = new AbortController();
  #link: Link | undefined;
  /** Those who need the next session. */
  #linked = Promise.withResolvers<Link>();
  /** The last lease that this node asked for. */
  #leaseId: string | null = null;
  #isMember = false;
  #awayReason: Error | null = null;
  #running: Promise<void> | undefined;

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.lease = new Lease(options.monotonic, options.clock);
  }

  /** Why the database is unreachable, by the last attempt; null: it is reachable. */
  get awayReason(): Error | null {
    return this.#awayReason;
  }

  /** How long news takes to come, in milliseconds, by the last renewal; null if there is no session, or was no renewal yet. */
  get feedLag(): number | null {
    return this.#link?.feedLag ?? null;
  }

  /** Takes a lease, and keeps one until `leave`. Rejects if the first one is not to be had. */
  async join(): Promise<void> {
    this.#isMember = true;
    const link = await this.#connect(FIRST_TIMEOUT);
    this.#running = this.#run(link);
  }

  /**
   * Resolves when no node answers by anything from before this call. Asks again in a new session when one is lost.
   *
   * @throws `CHANGE_UNCONFIRMED`
   */
  async settle(): Promise<void> {
    const { monotonic } = this.#options;
    for (const start = monotonic(); ; ) {
      const link = this.#link ?? (await this.#nextLink());
      try {
        return await link.barriers.settle();
      } catch (error) {
        if (link.ending.reason === undefined) throw error;
        if (monotonic() - start > SESSIONS_PATIENCE) throw unconfirmed(error);
      }
    }
  }

  /** Gives up the lease at once. Changes that are under way are still confirmed. A database that is silent will find out. */
  async leave(): Promise<void> {
    this.#isMember = false;
    this.lease.end();
    const left = this.#link?.session.leave().catch(() => undefined);
    await Promise.race([left, sleep(LEAVE_TIMEOUT, undefined, { ref: false })]);
  }

  async close(): Promise<void> {
    this.#isMember = false;
    this.lease.end();
    this.#over.abort();
    this.#link?.session.end();
    await this.#running;
  }

  /** Those who never joined, as commands do, have a session when they first need one. */
  async #nextLink(): Promise<Link> {
    this.#running ??= this.#run(undefined);
    const timer = new AbortController();
    const late = sleep(SESSION_PATIENCE, undefined, { signal: AbortSignal.any([timer.signal, this.#over.signal]) });
    const link = await Promise.race([this.#linked.promise, late.catch(() => undefined)]);
    timer.abort();
    if (link === undefined) throw unconfirmed(this.#awayReason ?? undefined);
    return link;
  }

  /** Never rejects. */
  async #run(first: Link | undefined): Promise<void> {
    let link = first;
    while (!this.#over.signal.aborted) {
      link ??= await this.#connectAgain();
      if (link === undefined) return;
      await this.#keep(link);
      link = undefined;
    }
  }

  async #connectAgain(): Promise<Link | undefined> {
    for (let attempt = 0; ; attempt++) {
      const pause = PAUSES[attempt] ?? PAUSES.at(-1);
      await sleep(pause, undefined, { signal: this.#over.signal }).catch(() => undefined);
      if (this.#over.signal.aborted) return undefined;
      try {
        return await this.#connect(this.#options.node.ttl / 2);
      } catch (error) {
        if (this.#over.signal.aborted) return undefined;
        const reason = toError(error);
        if (attempt === 0) this.#options.log("the database is out of reach", reason);
        this.#setAway(reason);
      }
    }
  }

  /** Opens a session, and takes a lease if this is to be a node. An attempt that hangs is given up. */
  async #connect(timeout: number): Promise<Link> {
    const link = await Link.open(this.#options, timeout);
    try {
      if (this.#isMember) await this.#join(link, timeout);
      // Who closes meanwhile has no link to end yet, and waits for this one.
      this.#over.signal.throwIfAborted();
    } catch (error) {
      link.session.end();
      throw error;
    }
    this.#setAway(null);
    this.#link = link;
    this.#linked.resolve(link);
    link.ending.onEnd((reason) => this.#lose(reason));
    return link;
  }

  async #join(link: Link, timeout: number): Promise<void> {
    const { node, sendEcho, onForget } = this.#options;
    const sent = this.lease.moment;
    const earlier = this.#leaseId;
    this.#leaseId = link.session.id;
    await this.#within(link, link.join(node, earlier), timeout);
    const isHeard = await this.#within(link, link.echo(sendEcho), timeout).catch((error: unknown) => {
      throw error instanceof Late ? unheard() : error;
    });
    if (!isHeard) throw elsewhere();
    // What was read before the lease was there, nobody will tell us of.
    onForget();
    if (this.#isMember) this.lease.extend(sent, node.ttl);
    else await link.session.leave();
  }

  /** Renews the lease until the session is over. */
  async #keep(link: Link): Promise<void> {
    const { ttl } = this.#options.node;
    while (link.ending.reason === undefined) {
      try {
        await link.ending.race(sleep(ttl / RENEWALS, undefined, { ref: false }));
        if (this.#isMember) await this.#renew(link);
      } catch {
        link.session.end();
      }
    }
  }

  async #renew(link: Link): Promise<void> {
    const { ttl } = this.#options.node;
    const sent = this.lease.moment;
    const isHeld = await this.#within(link, link.renew(), ttl * (USED_PART - 1 / RENEWALS));
    if (!this.#isMember) return;
    if (!isHeld) throw new Error("the lease was taken away");
    this.lease.extend(sent, ttl);
  }

  /** Rejects if the session ends, or the work takes longer: then the database is thought to be away. */
  async #within<T>(link: Link, work: Promise<T>, limit: number): Promise<T> {
    const timer = new AbortController();
    const late = sleep(limit, new Late(), { signal: timer.signal, ref: false }).catch(() => new Late());
    const result = await link.ending.race(Promise.race([work, late])).finally(() => timer.abort());
    if (!(result instanceof Late)) return result;
    this.#setAway(result);
    throw result;
  }

  #lose(reason: Error): void {
    this.#link = undefined;
    this.#linked = Promise.withResolvers();
    this.lease.end();
    if (this.#over.signal.aborted) return;
    this.#options.log("the connection for news of changes was lost", reason);
    this.#options.onForget();
  }

  #setAway(reason: Error | null): void {
    const isChange = (reason === null) !== (this.#awayReason === null);
    this.#awayReason = reason;
    if (isChange) this.#options.onAway(reason);
  }
}

class Late extends Error {
  constructor() {
    super("the connection for notifications did not answer in time");
  }
}

function unheard(): KeyholdError {
  return new KeyholdError(
    "DATABASE_UNAVAILABLE",
    "no notifications arrive from the database: KEYHOLD_DATABASE_LISTEN_URL must lead to the database itself, not to a pooler of transactions",
  );
}

function elsewhere(): KeyholdError {
  return new KeyholdError(
    "DATABASE_UNAVAILABLE",
    "KEYHOLD_DATABASE_LISTEN_URL leads to another database than KEYHOLD_DATABASE_URL",
  );
}

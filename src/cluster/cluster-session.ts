import type { Clock, Monotonic } from "../lib/clock.ts";
import { Barriers } from "./barriers.ts";
import {
  type FeedEvent,
  type FeedSession,
  type LogPosition,
  type Mark,
  type NodeIdentity,
  type OpenFeed,
  OtherServerError,
  type RenewLease,
} from "./change-feed.ts";
import { ClockOffset } from "./clock-offset.ts";
import { PeerLeases } from "./peer-leases.ts";
import { LeaseGoneError } from "./renewal-errors.ts";
import type { DatabasePosition, ServerId } from "./server-id.ts";

export interface ClusterSessionOptions {
  readonly open: OpenFeed;
  readonly renew: RenewLease;
  readonly clock: Clock;
  readonly monotonic: Monotonic;
  /** Called for every change, before any later barrier is acknowledged. */
  readonly onChange: (event: ChangeNotification) => void;
}

export type ChangeNotification = Exclude<FeedEvent, { type: "barrier" | "acknowledgement" | "echo" }>;

/** A session with the database: sends barriers and acknowledges those of other nodes. */
export class ClusterSession {
  readonly clockOffset: ClockOffset;
  /** Set by `open`, like the barriers; notifications may arrive before that. */
  feed!: FeedSession;
  barriers!: Barriers;
  /** When the session was opened, by the monotonic clock. */
  openTime = Number.POSITIVE_INFINITY;
  /** Time from the last renewal to its echo in milliseconds, an upper bound of the notification delay. Null before the first. */
  feedLag: number | null = null;
  /** Every change before it in the audit log was notified in this session, or was committed before its lease. Null if unknown. */
  logPosition: LogPosition | null = null;
  /** Number of leases at the last renewal, and the longest of them in milliseconds. */
  #leases = { count: 1, longest: Number.POSITIVE_INFINITY };
  /** When this node had joined. */
  #joinTime = Number.POSITIVE_INFINITY;
  readonly #options: ClusterSessionOptions;
  readonly #peers = new PeerLeases();
  readonly #echoes = new Map<number, () => void>();
  readonly #ended = new AbortController();
  #renewals = 0;
  #marks: Mark[] = [];

  private constructor(options: ClusterSessionOptions) {
    this.#options = options;
    this.clockOffset = new ClockOffset(options.clock, options.monotonic);
  }

  /** Resolves when every change committed from then on will be received; rejects after `timeout` milliseconds. */
  static async open(options: ClusterSessionOptions, timeout: number): Promise<ClusterSession> {
    const opened = new ClusterSession(options);
    const wall = options.clock.now();
    const session = await options.open(
      { onEvent: (event) => opened.#receive(event), onLost: (reason) => opened.#end(reason) },
      timeout,
    );
    opened.feed = session;
    opened.logPosition ??= session.position.log;
    opened.clockOffset.observe(session.position.time, { wall });
    opened.openTime = options.monotonic();
    opened.barriers = new Barriers(session, opened.#peers, options.monotonic);
    return opened;
  }

  /** Aborts when the session ends, with the reason. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  get server(): ServerId {
    return this.feed.position.server;
  }

  /** Stores a lease that replaces the earlier one. It is usable after its first renewal. */
  async join(node: NodeIdentity, earlier: string | null): Promise<void> {
    const sent = this.barriers.now();
    this.barriers.observe(await this.feed.join(node, earlier, this.clockOffset.ahead), sent);
    this.#joinTime = this.#options.monotonic();
  }

  /**
   * Number of nodes that may have a lease, this one included. Null until every other node that has one has renewed it since this one joined, and
   * so knows of it.
   */
  get nodes(): number | null {
    const { count, longest } = this.#leases;
    return this.#options.monotonic() >= this.#joinTime + longest ? count : null;
  }

  /**
   * Renews the lease, which is not extended unless all synchronous standbys have it (`isReplicated`). `echo` resolves when the notification
   * of the renewal was received.
   *
   * @throws OtherServerError, or another error when the lease is gone; what the database or the connection failed with.
   */
  async renew() {
    const { clock, monotonic, renew } = this.#options;
    const [number, start, sent] = [++this.#renewals, monotonic(), this.barriers.now()];
    const wall = clock.now();
    const echo = new Promise<void>((resolve) => this.#echoes.set(number, resolve)).then(() => {
      this.feedLag = monotonic() - start;
    });
    try {
      const leaseId = this.feed.id;
      const { position, isHeld, isReplicated, leases } = await renew(
        { leaseId, number, feedLag: this.feedLag, clockAhead: this.clockOffset.ahead },
        this.#ended.signal,
      );
      this.clockOffset.observe(position.time, { wall });
      this.requireServer(position);
      if (!isHeld) throw new LeaseGoneError("the lease was deleted");
      this.#leases = { count: leases.length, longest: Math.max(...leases.map(({ ttl }) => ttl)) };
      const others = leases.filter((lease) => lease.leaseId !== leaseId);
      this.barriers.observe(others, sent);
      // Deletes leases of crashed nodes so that later changes do not wait for them.
      if (isReplicated && this.#peers.overdue(monotonic()).length > 0)
        void this.barriers.fence().catch(() => undefined);
      return { isReplicated, position, echo };
    } catch (error) {
      this.#echoes.delete(number);
      throw error;
    }
  }

  /** @throws OtherServerError when a statement was answered by another server than that of this session. */
  requireServer({ server }: Pick<DatabasePosition, "server">): void {
    if (server !== this.server) throw new OtherServerError(server, this.server);
  }

  #receive(event: FeedEvent): void {
    switch (event.type) {
      case "barrier":
        this.#acknowledge(event);
        break;
      case "acknowledgement":
        this.barriers?.acknowledged(event);
        break;
      case "echo":
        this.#echoes.get(event.number)?.();
        this.#echoes.delete(event.number);
        break;
      case "audit_log":
        this.logPosition = event;
        this.#options.onChange(event);
        break;
      default:
        this.#options.onChange(event);
    }
  }

  /** Barriers that arrive in one tick of the event loop are acknowledged together. */
  #acknowledge({ from, number }: Mark): void {
    this.#marks.push({ from, number });
    if (this.#marks.length > 1) return;
    queueMicrotask(() => {
      const marks = this.#marks;
      this.#marks = [];
      // Without the acknowledgement the sender waits until our lease has ended.
      this.feed?.acknowledge(marks).catch(() => undefined);
    });
  }

  #end(reason: Error): void {
    this.#ended.abort(reason);
    this.barriers?.fail(reason);
  }
}

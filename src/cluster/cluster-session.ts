import type { Monotonic } from "../lib/clock.ts";
import { CloseSignal } from "../lib/close-signal.ts";
import { Barriers } from "./barriers.ts";
import {
  type FeedEvent,
  type FeedSession,
  type Mark,
  type NodeIdentity,
  type OpenFeed,
  OtherServerError,
  type RenewLease,
} from "./change-feed.ts";
import { PeerLeases } from "./peer-leases.ts";
import type { DatabasePosition, ServerId } from "./server-id.ts";

/** What one session needs, and whom it tells of what it hears. */
export interface ClusterSessionOptions {
  readonly open: OpenFeed;
  readonly renew: RenewLease;
  readonly monotonic: Monotonic;
  /** Told of every change, before any barrier behind it is acknowledged. */
  readonly onChange: (event: Change) => void;
}

export type Change = Exclude<FeedEvent, { type: "barrier" | "acknowledgement" | "echo" }>;

/** What became of a renewal that the database has answered. */
export interface Renewed {
  /** Whether the synchronous standbys have it, if there are any. Without that the lease is not extended. */
  readonly isReplicated: boolean;
  readonly position: DatabasePosition;
  /** Resolves when the notification of the renewal has come. */
  readonly echo: Promise<void>;
}

/** One session with the database: its barriers, and the acknowledgement of those of others. */
export class ClusterSession {
  readonly ending = new CloseSignal();
  readonly #options: ClusterSessionOptions;
  readonly #peers = new PeerLeases();
  readonly #echoes = new Map<number, () => void>();
  readonly #over = new AbortController();
  #session: FeedSession | undefined;
  #barriers: Barriers | undefined;
  #openTime = Number.POSITIVE_INFINITY;
  #renewals = 0;
  #marks: Mark[] = [];
  #feedLag: number | null = null;

  private constructor(options: ClusterSessionOptions) {
    this.#options = options;
  }

  /** Resolves when all that is committed from then on will be heard of; rejects after `timeout` milliseconds. */
  static async open(options: ClusterSessionOptions, timeout: number): Promise<ClusterSession> {
    const link = new ClusterSession(options);
    const session = await options.open(
      { onEvent: (event) => link.#hear(event), onLost: (reason) => link.#end(reason) },
      timeout,
    );
    link.#session = session;
    link.#openTime = options.monotonic();
    link.#barriers = new Barriers(session, link.#peers, options.monotonic);
    return link;
  }

  get session(): FeedSession {
    if (this.#session === undefined) throw new Error("the session is not open yet");
    return this.#session;
  }

  get barriers(): Barriers {
    if (this.#barriers === undefined) throw new Error("the session is not open yet");
    return this.#barriers;
  }

  /** When the session was open, by the monotonic clock. */
  get openTime(): number {
    return this.#openTime;
  }

  get server(): ServerId {
    return this.session.position.server;
  }

  /** How long the last echo took, in milliseconds, its renewal included: as long as news takes to come. Null before the first. */
  get feedLag(): number | null {
    return this.#feedLag;
  }

  /** Takes a lease in place of the earlier one. It may be used when it was renewed. */
  async join(node: NodeIdentity, earlier: string | null): Promise<void> {
    const sent = this.barriers.now();
    this.barriers.observe(await this.session.join(node, earlier), sent);
  }

  /** @throws OtherServerError, or another error when the lease is gone; what the database or the connection failed with. */
  async renew(): Promise<Renewed> {
    const { monotonic, renew } = this.#options;
    const [number, start, sent] = [++this.#renewals, monotonic(), this.barriers.now()];
    const echo = this.#expectEcho(number).then(() => {
      this.#feedLag = monotonic() - start;
    });
    try {
      const leaseId = this.session.id;
      const { position, isHeld, isReplicated, leases } = await renew(
        { leaseId, number, feedLag: this.#feedLag },
        this.#over.signal,
      );
      this.requireServer(position);
      if (!isHeld) throw new LeaseGoneError();
      const others = leases.filter((lease) => lease.leaseId !== leaseId);
      this.barriers.observe(others, sent);
      // A node that crashed leaves its lease behind. Nobody need wait for it who asks later.
      if (isReplicated && this.#peers.overdue(monotonic()).length > 0)
        void this.barriers.fence().catch(() => undefined);
      return { isReplicated, position, echo };
    } catch (error) {
      this.#echoes.delete(number);
      throw error;
    }
  }

  /** @throws OtherServerError when a statement was answered by a server that this session does not listen to. */
  requireServer({ server }: Pick<DatabasePosition, "server">): void {
    if (server !== this.server) throw new OtherServerError(server, this.server);
  }

  #expectEcho(number: number): Promise<void> {
    return new Promise((resolve) => this.#echoes.set(number, resolve));
  }

  #hear(event: FeedEvent): void {
    switch (event.type) {
      case "barrier":
        this.#acknowledge(event);
        break;
      case "acknowledgement":
        this.#barriers?.acknowledged(event);
        break;
      case "echo":
        this.#echoes.get(event.number)?.();
        this.#echoes.delete(event.number);
        break;
      default:
        this.#options.onChange(event);
    }
  }

  /** Those that come in one turn of the event loop are acknowledged together. */
  #acknowledge({ from, number }: Mark): void {
    this.#marks.push({ from, number });
    if (this.#marks.length > 1) return;
    queueMicrotask(() => {
      const marks = this.#marks;
      this.#marks = [];
      // Whoever waits for an acknowledgement that is not sent waits until our lease is over.
      this.#session?.acknowledge(marks).catch(() => undefined);
    });
  }

  #end(reason: Error): void {
    this.#over.abort();
    this.ending.end(reason);
    this.#barriers?.fail(reason);
  }
}

export class LeaseGoneError extends Error {
  constructor() {
    super("the lease was taken away");
  }
}

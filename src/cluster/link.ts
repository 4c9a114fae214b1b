import { Ending } from "../lib/ending.ts";
import type { Monotonic } from "../lib/monotonic.ts";
import { Barriers } from "./barriers.ts";
import type { FeedEvent, FeedSession, Mark, NodeIdentity, OpenFeed, SendEcho } from "./feed.ts";
import { Peers } from "./peers.ts";

/** What one session needs, and whom it tells of what it hears. */
export interface LinkOptions {
  readonly open: OpenFeed;
  readonly monotonic: Monotonic;
  /** Told of every change, before any barrier behind it is acknowledged. */
  readonly onChange: (event: Change) => void;
}

export type Change = Exclude<FeedEvent, { type: "barrier" | "acknowledgement" | "echo" }>;

/** One session with the database: its barriers, and the acknowledgement of those of others. */
export class Link {
  readonly ending = new Ending();
  readonly #options: LinkOptions;
  readonly #peers = new Peers();
  #session: FeedSession | undefined;
  #barriers: Barriers | undefined;
  #onEcho: (() => void) | undefined;
  #marks: Mark[] = [];
  #feedLag: number | null = null;

  private constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** Resolves when all that is committed from then on will be heard of; rejects after `timeout` milliseconds. */
  static async open(options: LinkOptions, timeout: number): Promise<Link> {
    const link = new Link(options);
    const session = await options.open(
      { onEvent: (event) => link.#hear(event), onLost: (reason) => link.#end(reason) },
      timeout,
    );
    link.#session = session;
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

  /** How long the last renewal took, in milliseconds: as long as news takes to come. Null before the first. */
  get feedLag(): number | null {
    return this.#feedLag;
  }

  /** Takes a lease in place of the earlier one. */
  async join(node: NodeIdentity, earlier: string | null): Promise<void> {
    this.barriers.observe(await this.session.join(node, earlier));
  }

  /** Resolves when what `send` sends to this session has been heard; answers what `send` does, if that is no. */
  async echo(send: SendEcho): Promise<boolean> {
    const heard = new Promise<void>((resolve) => {
      this.#onEcho = resolve;
    });
    if (!(await send(this.session.id))) return false;
    await heard;
    return true;
  }

  /** Answers whether the lease is still held. */
  async renew(): Promise<boolean> {
    const { monotonic } = this.#options;
    const sent = monotonic();
    const { isHeld, others } = await this.session.renew(this.#feedLag);
    this.#feedLag = monotonic() - sent;
    this.barriers.observe(others);
    if (isHeld) await this.#fenceOverdue();
    return isHeld;
  }

  /** A node that crashed leaves its lease behind. Nobody need wait for it who asks later. */
  async #fenceOverdue(): Promise<void> {
    const overdue = this.#peers.overdue(this.#options.monotonic());
    if (overdue.length > 0) this.barriers.observe(await this.session.fence(overdue));
  }

  #hear(event: FeedEvent): void {
    switch (event.type) {
      case "barrier":
        this.#acknowledge(event);
        break;
      case "acknowledgement":
        this.#barriers?.hear(event);
        break;
      case "echo":
        this.#onEcho?.();
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
    this.ending.end(reason);
    this.#barriers?.fail(reason);
  }
}

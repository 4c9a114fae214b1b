import { Ending } from "../lib/ending.ts";
import type { Monotonic } from "../lib/monotonic.ts";
import { Barriers } from "./barriers.ts";
import type { FeedEvent, FeedSession, Mark, NodeIdentity, OpenFeed, Renewal } from "./feed.ts";
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
  #echoes = 0;
  #onEcho: ((number: number) => void) | undefined;
  #marks: Mark[] = [];
  #feedLag = 0;

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

  /** Resolves when a lease is held in place of the earlier one, and notifications are known to arrive. */
  join(node: NodeIdentity, earlier: string | null): Promise<boolean> {
    return this.#confirmed((echo) => this.session.join(node, echo, earlier));
  }

  /** Resolves when the renewal is answered and all has been heard that was committed before it; false if the lease is lost. */
  renew(): Promise<boolean> {
    return this.#confirmed((echo) => this.session.renew(this.#feedLag, echo));
  }

  async #confirmed(ask: (echo: number) => Promise<Renewal>): Promise<boolean> {
    const number = ++this.#echoes;
    const sent = this.#options.monotonic();
    const echoed = new Promise<void>((resolve) => {
      this.#onEcho = (heard) => {
        if (heard === number) resolve();
      };
    });
    const { isHeld, others } = await ask(number);
    this.barriers.observe(others);
    if (!isHeld) return false;
    await echoed;
    this.#feedLag = this.#options.monotonic() - sent;
    await this.#fenceOverdue();
    return true;
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
        this.#onEcho?.(event.number);
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

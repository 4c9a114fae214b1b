import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { Seeded } from "../support/seeded.ts";

/** A node's own road to PostgreSQL. */
export class Road {
  /** Milliseconds that bytes are held at the most; their order within a connection stays. */
  jitter = 0;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #seeded: Seeded;
  #target: number;
  #isCutOff = false;

  private constructor(port: number, seeded: Seeded) {
    this.#target = port;
    this.#seeded = seeded;
    const options = { allowHalfOpen: true };
    this.#server = createServer(options, (client) => {
      this.#links.add(new Link(client, connect({ port: this.#target, host: "127.0.0.1", ...options }), this.#traits()));
    });
  }

  static async start(port: number, seeded: Seeded): Promise<Road> {
    const road = new Road(port, seeded);
    road.#server.listen(0, "127.0.0.1");
    await once(road.#server, "listening");
    return road;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connects new connections to this port; those that are open stay where they are. */
  redirect(port: number): void {
    this.#target = port;
  }

  /** From now on nothing gets through either way, and nobody is told. */
  cutOff(): void {
    this.#isCutOff = true;
  }

  /** What was held back goes on its way, late, unless the connections are given up. */
  restore(how: "deliver" | "reset"): void {
    this.#isCutOff = false;
    for (const link of this.#links) how === "reset" ? link.reset() : link.deliver();
  }

  reset(): void {
    for (const link of this.#links) link.reset();
  }

  /** Resets the connection that PostgreSQL sees coming from this port. Answers whether it is ours. */
  resetOne(clientPort: number): boolean {
    const link = [...this.#links].find((one) => one.port === clientPort);
    link?.reset();
    return link !== undefined;
  }

  close(): void {
    this.#server.close();
    this.reset();
  }

  #traits(): LinkTraits {
    return {
      delay: () => (this.jitter === 0 ? 0 : this.#seeded.below(this.jitter * 1000) / 1000),
      isHeld: () => this.#isCutOff,
      closed: (link) => this.#links.delete(link),
    };
  }
}

interface LinkTraits {
  delay(): number;
  isHeld(): boolean;
  closed(link: Link): void;
}

/** One connection: both its ways, each a queue. */
class Link {
  readonly #upstream: Socket;
  readonly #client: Socket;
  readonly #lanes: readonly Lane[];

  constructor(client: Socket, upstream: Socket, traits: LinkTraits) {
    this.#client = client;
    this.#upstream = upstream;
    this.#lanes = [new Lane(client, upstream, traits), new Lane(upstream, client, traits)];
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => {
        if (client.destroyed && upstream.destroyed) traits.closed(this);
      });
    }
  }

  /** As PostgreSQL sees it. */
  get port(): number | undefined {
    return this.#upstream.localPort;
  }

  deliver(): void {
    for (const lane of this.#lanes) lane.deliver();
  }

  reset(): void {
    this.#client.resetAndDestroy();
    this.#upstream.resetAndDestroy();
  }
}

/** One way of a connection. That its sender has gone is told in its turn, after all the bytes. */
class Lane {
  readonly #to: Socket;
  readonly #traits: LinkTraits;
  readonly #queue: { readonly chunk: Buffer | null; readonly due: number }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket, traits: LinkTraits) {
    this.#to = to;
    this.#traits = traits;
    from.on("data", (chunk: Buffer) => this.#send(chunk));
    from.once("close", () => this.#send(null));
    from.once("end", () => this.#send(null));
  }

  deliver(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#traits.isHeld()) return;
    for (let [first] = this.#queue; first !== undefined && first.due <= performance.now(); [first] = this.#queue) {
      this.#queue.shift();
      if (first.chunk === null) this.#to.end();
      else if (!this.#to.destroyed) this.#to.write(first.chunk);
    }
    this.#wait();
  }

  #send(chunk: Buffer | null): void {
    const earliest = this.#queue.at(-1)?.due ?? 0;
    this.#queue.push({ chunk, due: Math.max(earliest, performance.now() + this.#traits.delay()) });
    if (this.#timer === undefined) this.deliver();
  }

  #wait(): void {
    const [first] = this.#queue;
    if (first !== undefined) this.#timer = setTimeout(() => this.deliver(), Math.max(1, first.due - performance.now()));
  }
}

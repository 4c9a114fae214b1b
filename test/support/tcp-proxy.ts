import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { listenLocally } from "./listen.ts";
import type { Seeded } from "./seeded.ts";

/** How a connection ends: `fin` as if the peer closed it, `rst` as if its machine or a firewall dropped it. */
export type Cut = "fin" | "rst";

/** Transforms the responses of one connection. It may also end the client. */
export type ResponseFilter = (client: Socket) => (response: Buffer) => Buffer;

interface ProxyOptions {
  /** Called for each connection. */
  readonly filter?: ResponseFilter;
  /** Source of `jitter`. */
  readonly seeded?: Seeded;
}

/**
 * A TCP proxy with fault injection: it ends, refuses, delays, freezes and redirects connections.
 *
 * @example
 * const proxy = await TcpProxy.start(databaseUrl);
 * const pool = new Pool({ url: proxy.url });
 * proxy.cut("rst");
 */
export class TcpProxy {
  /** The given URL with the address of the proxy. */
  readonly url: string;
  /** Maximum delay in milliseconds. The order within a connection is preserved. */
  jitter = 0;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #options: ProxyOptions;
  #target: { readonly host: string; readonly port: number };
  #frozen: "nothing" | "responses" | "all" = "nothing";

  private constructor(target: URL, server: Server, options: ProxyOptions) {
    const url = new URL(target);
    [url.hostname, url.port] = ["127.0.0.1", String((server.address() as AddressInfo).port)];
    this.url = url.href;
    this.#target = { host: target.hostname, port: Number(target.port) };
    this.#server = server;
    this.#options = options;
    server.on("connection", (client) => this.#connect(client));
  }

  /** Starts a proxy to the host and port of a URL. */
  static async start(target: string, options: ProxyOptions = {}): Promise<TcpProxy> {
    const server = createServer({ allowHalfOpen: true });
    await listenLocally(server);
    return new TcpProxy(new URL(target), server, options);
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** Number of open connections. */
  connections(): number {
    return this.#open().length;
  }

  /** Ends every connection. */
  cut(how: Cut): void {
    for (const link of this.#links) link.cut(how);
  }

  /** Ends the connection at this index, if there is one. */
  cutOne(how: Cut, index: number): void {
    this.#open()[index]?.cut(how);
  }

  /** Resets the connection that the server sees coming from this port. Returns false if it is not of this proxy. */
  resetFrom(port: number): boolean {
    const link = [...this.#links].find((one) => one.upstreamPort === port);
    link?.cut("rst");
    return link !== undefined;
  }

  /** Stops listening and resets every connection: new ones are refused until `up`. */
  async down(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.close();
    this.cut("rst");
    await once(this.#server, "close");
  }

  async up(): Promise<void> {
    await listenLocally(this.#server, this.port);
  }

  close(): Promise<void> {
    return this.down();
  }

  /** Connects new connections to another port of 127.0.0.1. Open ones stay. */
  redirect(port: number): void {
    this.#target = { host: "127.0.0.1", port };
  }

  /** Queues responses, or both directions, until `thaw`. Neither side is notified. */
  freeze(what: "responses" | "all" = "responses"): void {
    this.#frozen = what;
  }

  /** Delivers what was queued, or resets the connections. */
  thaw(how: "deliver" | "reset" = "deliver"): void {
    this.#frozen = "nothing";
    for (const link of this.#links) how === "reset" ? link.cut("rst") : link.deliver();
  }

  #open(): Link[] {
    return [...this.#links].filter((link) => link.isOpen);
  }

  #connect(client: Socket): void {
    const { filter, seeded } = this.#options;
    const delay = () => (this.jitter === 0 || seeded === undefined ? 0 : seeded.below(this.jitter * 1000) / 1000);
    const link = new Link(client, connect({ ...this.#target, allowHalfOpen: true }), {
      request: { transform: (bytes) => bytes, delay, isFrozen: () => this.#frozen === "all" },
      response: {
        transform: filter?.(client) ?? ((bytes) => bytes),
        delay,
        isFrozen: () => this.#frozen !== "nothing",
      },
      onClosed: () => this.#links.delete(link),
    });
    this.#links.add(link);
  }
}

interface DirectionOptions {
  transform(bytes: Buffer): Buffer;
  delay(): number;
  isFrozen(): boolean;
}

interface LinkOptions {
  readonly request: DirectionOptions;
  readonly response: DirectionOptions;
  onClosed(): void;
}

/** One connection: the client's socket and the one to the server. */
class Link {
  readonly #client: Socket;
  readonly #upstream: Socket;
  readonly #directions: readonly Direction[];

  constructor(client: Socket, upstream: Socket, { request, response, onClosed }: LinkOptions) {
    this.#client = client;
    this.#upstream = upstream;
    this.#directions = [new Direction(client, upstream, request), new Direction(upstream, client, response)];
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => {
        if (client.destroyed && upstream.destroyed) onClosed();
      });
    }
  }

  get isOpen(): boolean {
    return !this.#client.destroyed && !this.#upstream.destroyed;
  }

  /** The client port that the server sees. */
  get upstreamPort(): number | undefined {
    return this.#upstream.localPort;
  }

  deliver(): void {
    for (const direction of this.#directions) direction.deliver();
  }

  cut(how: Cut): void {
    for (const socket of [this.#client, this.#upstream])
      how === "rst" ? socket.resetAndDestroy() : socket.destroySoon();
  }
}

/** One direction of a connection: a queue of data, the sender's half-close and its close, in order. */
class Direction {
  readonly #to: Socket;
  readonly #options: DirectionOptions;
  readonly #queue: { readonly event: Buffer | "end" | "close"; readonly due: number }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket, options: DirectionOptions) {
    this.#to = to;
    this.#options = options;
    from.on("data", (bytes: Buffer) => this.#enqueue(options.transform(bytes)));
    from.once("end", () => this.#enqueue("end"));
    from.once("close", () => this.#enqueue("close"));
  }

  /** Sends the events that are due. */
  deliver(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#options.isFrozen()) return;
    for (let [first] = this.#queue; first !== undefined && first.due <= performance.now(); [first] = this.#queue) {
      this.#queue.shift();
      this.#send(first.event);
    }
    const [next] = this.#queue;
    if (next !== undefined) this.#timer = setTimeout(() => this.deliver(), Math.max(1, next.due - performance.now()));
  }

  #enqueue(event: Buffer | "end" | "close"): void {
    const earliest = this.#queue.at(-1)?.due ?? 0;
    this.#queue.push({ event, due: Math.max(earliest, performance.now() + this.#options.delay()) });
    if (this.#timer === undefined) this.deliver();
  }

  #send(event: Buffer | "end" | "close"): void {
    if (event === "close") this.#to.destroySoon();
    else if (event === "end") this.#to.end();
    else if (!this.#to.destroyed && event.length > 0) this.#to.write(event);
  }
}

/**
 * Starts a proxy that resets the connection instead of passing on a response, by its number from `cutAt`. Responses to lease renewals are
 * neither counted nor cut.
 */
export async function startCuttingProxy(databaseUrl: string) {
  let remaining = Number.POSITIVE_INFINITY;
  let isCut = false;
  const filter: ResponseFilter = (client) => {
    let isBackground = false;
    client.once("data", (startup: Buffer) => {
      isBackground = ["keyhold lease", "keyhold audit"].some((name) => startup.includes(name));
    });
    return (response) => {
      if (isBackground || remaining-- > 0) return response;
      [remaining, isCut] = [Number.POSITIVE_INFINITY, true];
      client.resetAndDestroy();
      return Buffer.alloc(0);
    };
  };
  const proxy = await TcpProxy.start(databaseUrl, { filter });
  return {
    url: proxy.url,
    close: () => proxy.close(),
    /** Cuts at this response of any connection, counted from now; `Infinity`: at none. */
    cutAt: (response: number) => {
      [remaining, isCut] = [response, false];
    },
    isCut: () => isCut,
  };
}

const NOTIFICATION_RESPONSE = "A".charCodeAt(0);

/** Drops PostgreSQL's notifications, like a transaction pooler. A message is a type byte and a length that includes itself (PostgreSQL docs, 54.7). */
export const withoutNotifications: ResponseFilter = () => {
  let rest: Buffer = Buffer.alloc(0);
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    const messages: Buffer[] = [];
    while (rest.length >= 5 && rest.length > rest.readUInt32BE(1)) {
      const end = rest.readUInt32BE(1) + 1;
      if (rest[0] !== NOTIFICATION_RESPONSE) messages.push(rest.subarray(0, end));
      rest = rest.subarray(end);
    }
    return Buffer.concat(messages);
  };
};

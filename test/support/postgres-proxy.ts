import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** How a connection ends: `fin` as when the other side closes it, `rst` as when its machine or a firewall drops it. */
export type Cut = "fin" | "rst";

/** A road to a PostgreSQL server over TCP that a test can break. */
export interface PostgresProxy {
  /** The URL of the database by this road. */
  readonly url: string;
  /** Connections through it now. */
  connections(): number;
  /** Ends every connection. */
  cut(how: Cut): void;
  /** Ends the connection at this place, if there is one. */
  cutOne(how: Cut, place: number): void;
  /** Stops listening and ends every connection: whoever connects is refused, until `up`. */
  down(): Promise<void>;
  up(): Promise<void>;
  /** Holds back all that the server sends, until `thaw`. */
  freeze(): void;
  thaw(): void;
  close(): Promise<void>;
}

export async function startPostgresProxy(databaseUrl: string): Promise<PostgresProxy> {
  const target = new URL(databaseUrl);
  const pairs = new Set<readonly [Socket, Socket]>();
  let frozen = false;

  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ port: Number(target.port), host: target.hostname, noDelay: true });
    const pair = [client, upstream] as const;
    pairs.add(pair);
    client.pipe(upstream, { end: false });
    // `thaw` pipes those that came meanwhile, and what is piped twice arrives twice.
    if (frozen) upstream.pause();
    else upstream.pipe(client);
    for (const socket of pair) {
      socket.on("error", () => {});
      socket.once("close", () => {
        pairs.delete(pair);
        for (const other of pair) other.destroy();
      });
    }
  });
  const listen = async (port: number) => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  };
  const port = await listen(0);
  const url = new URL(databaseUrl);
  url.port = String(port);
  const down = async () => {
    if (!server.listening) return;
    server.close();
    for (const pair of pairs) end(pair, "rst");
    await once(server, "close");
  };
  return {
    url: url.href,
    connections: () => pairs.size,
    cut: (how) => {
      for (const pair of pairs) end(pair, how);
    },
    cutOne: (how, place) => {
      const pair = [...pairs][place];
      if (pair !== undefined) end(pair, how);
    },
    down,
    up: async () => {
      await listen(port);
    },
    freeze: () => {
      frozen = true;
      for (const [, upstream] of pairs) upstream.unpipe().pause();
    },
    thaw: () => {
      frozen = false;
      for (const [client, upstream] of pairs) upstream.pipe(client);
    },
    close: down,
  };
}

function end([client, upstream]: readonly [Socket, Socket], how: Cut): void {
  if (how === "rst") client.resetAndDestroy();
  else client.end();
  upstream.destroy();
}

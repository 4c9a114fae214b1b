import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A road to a database. `answers` makes, for each connection, what is given all that the database sends, and hands it on or not. */
export async function startRoad(databaseUrl: string, answers: (client: Socket) => (bytes: Buffer) => void) {
  const target = new URL(databaseUrl);
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect(Number(target.port), target.hostname);
    client.pipe(upstream);
    upstream.on("data", answers(client));
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      socket.on("error", () => {});
      socket.once("close", () => other.destroy());
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(databaseUrl);
  url.port = String((server.address() as AddressInfo).port);
  return { url: url.href, close: () => server.close() };
}

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A road to a database on which the connection ends at an answer, told by its number from when it is set. */
export async function startCuttingRoad(databaseUrl: string) {
  const target = new URL(databaseUrl);
  let answers = Number.POSITIVE_INFINITY;
  let isCut = false;
  const pass = (client: Socket, answer: Buffer) => {
    if (answers-- > 0) return client.write(answer);
    isCut = true;
    answers = Number.POSITIVE_INFINITY;
    return client.resetAndDestroy();
  };
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    client.pipe(upstream);
    upstream.on("data", (answer: Buffer) => pass(client, answer));
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
  return {
    url: url.href,
    /** Cuts at this answer, of those that come from now on over any connection. `Infinity`: at none. */
    cutAt: (answer: number) => {
      [answers, isCut] = [answer, false];
    },
    isCut: () => isCut,
    close: () => server.close(),
  };
}

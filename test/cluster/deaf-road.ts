import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";

/** A road to a database on which no notification arrives, as through a pooler of transactions. */
export async function startDeafRoad(databaseUrl: string) {
  const target = new URL(databaseUrl);
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect(Number(target.port), target.hostname);
    const pass = withoutNotifications((message) => client.write(message));
    client.pipe(upstream);
    upstream.on("data", pass);
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

const NOTIFICATION_RESPONSE = "A".charCodeAt(0);

/** Every message of the server is a byte for its type, and its length with the four bytes of the length (PostgreSQL docs, 54.7). */
function withoutNotifications(send: (message: Buffer) => void): (bytes: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    while (rest.length >= 5 && rest.length > rest.readUInt32BE(1)) {
      const end = rest.readUInt32BE(1) + 1;
      if (rest[0] !== NOTIFICATION_RESPONSE) send(rest.subarray(0, end));
      rest = rest.subarray(end);
    }
  };
}

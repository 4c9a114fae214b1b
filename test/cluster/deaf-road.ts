import { startRoad } from "../support/road.ts";

/** A road to a database on which no notification arrives, as through a pooler of transactions. */
export function startDeafRoad(databaseUrl: string) {
  return startRoad(databaseUrl, (client) => withoutNotifications((message) => client.write(message)));
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

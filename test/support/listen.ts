import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";

/** Listens on a port of 127.0.0.1, by default any free one. Returns its number. */
export async function listenLocally(server: Server, port = 0): Promise<number> {
  await once(server.listen(port, "127.0.0.1"), "listening");
  return (server.address() as AddressInfo).port;
}

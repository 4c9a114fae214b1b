import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { onTestFinished } from "vitest";

/** Listens on a port of 127.0.0.1, by default any free one, until the test ends. Returns its number. */
export async function occupyPort(port = 0): Promise<number> {
  const server = createServer().listen(port, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

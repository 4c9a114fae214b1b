import { createServer } from "node:net";
import { onTestFinished } from "vitest";
import { listenLocally } from "./listen.ts";

/** Listens on a port of 127.0.0.1, by default any free one, until the test ends. Returns its number. */
export async function occupyPort(port = 0): Promise<number> {
  const server = createServer();
  onTestFinished(() => void server.close());
  return listenLocally(server, port);
}

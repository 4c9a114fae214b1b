import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { listenLocally } from "./listen.ts";

/**
 * Above the ports that browsers refuse (WHATWG Fetch, port blocking), and below those that systems give to connections and to servers on port
 * 0: nothing else takes one before it is used.
 */
const [FIRST, END] = [11_000, 31_000];

const returned = new Set<number>();

/** Returns a port of this machine that is not in use, and that it has not returned before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, END);
    if (returned.has(port)) continue;
    returned.add(port);
    const server = createServer();
    const isFree = await listenLocally(server, port).then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}

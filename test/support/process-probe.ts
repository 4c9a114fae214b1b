import { createServer } from "node:net";
import { join } from "node:path";
import { isMainThread } from "node:worker_threads";
import { retained } from "./retained.ts";

/** Loaded by `node --import` into every process of a server (`process-state.ts`): returns its state to each connection. */
export interface Probed {
  /** Bytes in use after a full garbage collection. */
  readonly retained: number;
  /** What keeps the event loop alive, by Node's names. */
  readonly resources: readonly string[];
}

const { PROBE_DIR } = process.env;

if (isMainThread && PROBE_DIR !== undefined) {
  const server = createServer(async (socket) => {
    socket.on("error", () => {});
    const state: Probed = { retained: await retained(), resources: process.getActiveResourcesInfo() };
    socket.end(JSON.stringify(state));
  });
  // Otherwise the primary would listen for its workers.
  server.listen({ path: join(PROBE_DIR, String(process.pid)), exclusive: true }).unref();
}

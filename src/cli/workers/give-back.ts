import type { ChildProcess } from "node:child_process";

/** What Node's cluster sends beside our own messages: connections to workers, which they acknowledge. */
interface ClusterMessage {
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

/**
 * Gives the connections that were on their way to a worker when it died to another one. Node waits for ever for the acknowledgement
 * (lib/internal/cluster/round_robin_handle.js, `handoff`), and the client with it. A worker acknowledges before it reads, so of what
 * it has not acknowledged it has read nothing. Node tells none of this outside: a test kills a worker that has been stopped.
 */
export function giveBackConnections(worker: ChildProcess): void {
  const underWay = new Set<number>();
  const send = worker.send.bind(worker) as (...args: unknown[]) => boolean;
  worker.send = (message: ClusterMessage, ...rest: unknown[]) => {
    if (message.act === "newconn" && message.seq !== undefined) underWay.add(message.seq);
    return send(message, ...rest);
  };
  worker.on("internalMessage", ({ ack }: ClusterMessage) => {
    if (ack !== undefined) underWay.delete(ack);
  });
  let isDisconnected = false;
  worker.once("disconnect", () => {
    isDisconnected = true;
  });
  // The process and its channel have ended: no more acknowledgements come.
  worker.once("close", () => {
    // Node puts this event off for ever too (lib/internal/child_process.js), and takes the worker off its list only then.
    if (!isDisconnected) worker.emit("disconnect");
    for (const ack of underWay) worker.emit("internalMessage", { cmd: "NODE_CLUSTER", ack, accepted: false });
  });
}

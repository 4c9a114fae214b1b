import type { ChildProcess } from "node:child_process";

/** An internal message of Node's cluster module: a connection for a worker, or its acknowledgement. */
interface ClusterMessage {
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

/**
 * Reassigns connections that were sent to a worker when it died. Node waits forever for the acknowledgement
 * (lib/internal/cluster/round_robin_handle.js, `handoff`), and so does the client. A worker acknowledges before it reads, so nothing of an
 * unacknowledged connection has been read. Node exposes none of this: a test kills a worker that has been stopped.
 */
export function reassignConnections(worker: ChildProcess): void {
  const inFlight = new Set<number>();
  const send = worker.send.bind(worker) as (...args: unknown[]) => boolean;
  worker.send = (message: ClusterMessage, ...rest: unknown[]) => {
    if (message.act === "newconn" && message.seq !== undefined) inFlight.add(message.seq);
    return send(message, ...rest);
  };
  worker.on("internalMessage", ({ ack }: ClusterMessage) => {
    if (ack !== undefined) inFlight.delete(ack);
  });
  let isDisconnected = false;
  worker.once("disconnect", () => {
    isDisconnected = true;
  });
  // The process and its channel are closed: no acknowledgement can follow.
  worker.once("close", () => {
    // Node also delays this event forever (lib/internal/child_process.js), and removes the worker from its list only then.
    if (!isDisconnected) worker.emit("disconnect");
    for (const ack of inFlight) worker.emit("internalMessage", { cmd: "NODE_CLUSTER", ack, accepted: false });
  });
}

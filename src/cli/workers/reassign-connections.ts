import type { ChildProcess } from "node:child_process";

/** What Node's cluster sends beside our own messages: connections to workers, which they acknowledge. */
interface ClusterMessage {
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

export interface Connections {
  /** Connections for the worker wait. There is one at the most: Node sends the next when it has the acknowledgement. */
  hold(): void;
  /** Gives the connections that wait to other workers. */
  release(): void;
}

/**
 * Gives the connections that were on their way to a worker when it died to another one. Node waits for ever for the acknowledgement
 * (lib/internal/cluster/round_robin_handle.js, `handoff`), and the client with it. A worker acknowledges before it reads, so of what
 * it has not acknowledged it has read nothing. Node tells none of this outside: a test kills a worker that has been stopped.
 */
export function reassignConnections(worker: ChildProcess): Connections {
  const inFlight = new Set<number>();
  const held = new Set<number>();
  let isHolding = false;
  const send = worker.send.bind(worker) as (...args: unknown[]) => boolean;
  worker.send = (message: ClusterMessage, ...rest: unknown[]) => {
    if (message.act !== "newconn" || message.seq === undefined) return send(message, ...rest);
    (isHolding ? held : inFlight).add(message.seq);
    return isHolding || send(message, ...rest);
  };
  const giveBack = (connections: ReadonlySet<number>) => {
    for (const ack of connections) worker.emit("internalMessage", { cmd: "NODE_CLUSTER", ack, accepted: false });
  };
  worker.on("internalMessage", ({ ack }: ClusterMessage) => {
    if (ack !== undefined) inFlight.delete(ack);
  });
  let isDisconnected = false;
  worker.once("disconnect", () => {
    isDisconnected = true;
  });
  // The process and its channel have ended: no more acknowledgements come.
  worker.once("close", () => {
    // Node puts this event off for ever too (lib/internal/child_process.js), and takes the worker off its list only then.
    if (!isDisconnected) worker.emit("disconnect");
    giveBack(inFlight);
    giveBack(held);
  });
  return {
    hold() {
      isHolding = true;
    },
    release() {
      isHolding = false;
      giveBack(held);
      held.clear();
    },
  };
}

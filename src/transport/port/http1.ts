import type { Socket } from "node:net";
import { systemClock } from "../../lib/clock.ts";
import { type ConnectionContext, Http1Connection } from "../http1/connection.ts";
import { ResponseWriter } from "../http1/response.ts";
import type { Front } from "./front.ts";
import type { PortLimits } from "./limits.ts";

export interface Http1 {
  /** Serves a socket whose client speaks HTTP/1.1; nothing has been read from it. */
  serve(socket: Socket): void;
  /** From now on every connection, a new one too, ends with its next response, or with that to the last request it has sent. */
  windDown(): void;
  /** Ends the connections that rest. */
  endResting(): void;
}

/** HTTP/1.1 for what `front` takes. `node` is Node's own, for the connections with anything else. */
export function createHttp1(
  limits: PortLimits,
  front: Front,
  node: Pick<ConnectionContext, "handOver" | "cutShort">,
): Http1 {
  const connections = new Set<Http1Connection>();
  let isWindingDown = false;
  const context = {
    ...node,
    take: front.takeMessage,
    left: (connection: Http1Connection) => connections.delete(connection),
    writer: new ResponseWriter(systemClock),
    maxHeadSize: limits.maxHeaderBytes,
    keepAliveTimeout: limits.keepAliveTimeout,
  };
  return {
    serve(socket) {
      const connection = new Http1Connection(socket, context);
      connections.add(connection);
      if (isWindingDown) connection.windDown();
    },
    windDown() {
      isWindingDown = true;
      for (const connection of connections) connection.windDown();
    },
    endResting() {
      for (const connection of connections) connection.endIfResting();
    },
  };
}

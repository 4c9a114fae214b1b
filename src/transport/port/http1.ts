import type { Socket } from "node:net";
import { systemClock } from "../../lib/clock.ts";
import { type ConnectionContext, Http1Connection } from "../http1/connection.ts";
import { ResponseWriter } from "../http1/response.ts";
import type { Front } from "./front.ts";
import type { PortLimits } from "./limits.ts";

export interface Http1 {
  /** Serves a socket whose client speaks HTTP/1.1; nothing has been read from it. */
  serve(socket: Socket): void;
  /** Ends the connections that rest; the others end with the response to the last request that they have sent. */
  drain(): void;
}

/** HTTP/1.1 for what `front` takes. `node` is Node's own, for the connections with anything else. */
export function createHttp1(
  limits: PortLimits,
  front: Front,
  node: Pick<ConnectionContext, "handOver" | "cutShort">,
): Http1 {
  const connections = new Set<Http1Connection>();
  const context = {
    ...node,
    take: front.takeMessage,
    left: (connection: Http1Connection) => connections.delete(connection),
    writer: new ResponseWriter(systemClock),
    maxHeadSize: limits.maxHeaderBytes,
    keepAliveTimeout: limits.keepAliveTimeout,
  };
  return {
    serve: (socket) => connections.add(new Http1Connection(socket, context)),
    drain() {
      for (const connection of connections) connection.close();
    },
  };
}

import type { Http1Connections } from "../../port/request-interceptor.ts";
import { type ConnectionContext, Http1Connection } from "./connection.ts";

export type Http1Options = Omit<ConnectionContext, "left">;

/** The HTTP/1.1 connections of a server. */
export function createHttp1Connections(options: Http1Options): Http1Connections {
  const connections = new Set<Http1Connection>();
  let isDraining = false;
  const context: ConnectionContext = {
    ...options,
    left: (connection) => connections.delete(connection),
  };
  return {
    serve(socket) {
      const connection = new Http1Connection(socket, context);
      connections.add(connection);
      if (isDraining) connection.startDraining();
    },
    startDraining() {
      isDraining = true;
      for (const connection of connections) connection.startDraining();
    },
    closeIdle() {
      for (const connection of connections) connection.closeIfIdle();
    },
  };
}

import type { NetConnectOpts, Socket } from "node:net";
import { connect } from "node:net";

/**
 * Opens a connection to a server, with two corrections for the `postgres` driver (3.4.9, closed() in connection.js):
 *
 * - After the first byte of the server it ends with `close` alone, without a preceding `error`: a query that the driver starts between
 * the two would never be answered, and a crash of the server always causes an error.
 * - Before that it ends with an `error`: the driver does not report a connection that was accepted and closed at once, as by a proxy
 * without a backend, and reconnects immediately, some thousand times a second.
 */
export function openClientSocket(to: NetConnectOpts): Socket {
  const socket = connect(to);
  const { destroy } = socket;
  socket.once("connect", () => {
    socket.destroy = (error) => destroy.call(socket, socket.bytesRead > 0 ? undefined : (error ?? closedUnanswered()));
  });
  return socket;
}

function closedUnanswered(): Error {
  return Object.assign(new Error("the database closed the connection without responding"), { code: "ECONNRESET" });
}

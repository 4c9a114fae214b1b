import type { NetConnectOpts, Socket } from "node:net";
import { connect } from "node:net";

/**
 * Opens a client's connection to a server. Once connected it ends by the event `close` alone, without an `error` before: a
 * query that the `postgres` client takes up between the two is never answered (3.4.9, closed() in connection.js passes over
 * it if there was an error), and after a crash of the server there is always one.
 */
export function openClientSocket(to: NetConnectOpts): Socket {
  const socket = connect(to);
  const { destroy } = socket;
  socket.once("connect", () => {
    socket.destroy = () => destroy.call(socket);
  });
  return socket;
}

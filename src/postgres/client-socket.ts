import type { NetConnectOpts, Socket } from "node:net";
import { connect } from "node:net";

/**
 * Opens a client's connection to a server. Two things about the `postgres` client (3.4.9, closed() in connection.js) are mended:
 *
 * - Once the server has spoken it ends by the event `close` alone, without an `error` before: a query that the client takes up
 *   between the two is never answered, and after a crash of the server there is always an error.
 * - Before that it ends by an `error`: of a connection that was taken and closed without a word, as by a proxy in front of nothing,
 *   the client tells nobody, and tries again at once, some thousand times a second.
 */
export function openClientSocket(to: NetConnectOpts): Socket {
  const socket = connect(to);
  const { destroy } = socket;
  socket.once("connect", () => {
    socket.destroy = (error) => destroy.call(socket, socket.bytesRead > 0 ? undefined : (error ?? closedUnheard()));
  });
  return socket;
}

function closedUnheard(): Error {
  return Object.assign(new Error("the server closed the connection without a word"), { code: "ECONNRESET" });
}

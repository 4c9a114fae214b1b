import type { Socket } from "node:net";

/** Milliseconds in which the client must close its side of a connection that the server has ended. */
const LINGER = 5_000;

/** Destroys a socket after so many milliseconds, unless it is closed before. */
export function destroyAfter(socket: Socket, timeout: number): void {
  const timer = setTimeout(() => socket.destroy(), timeout);
  socket.once("close", () => clearTimeout(timer));
}

/**
 * Reads a connection whose sending side has ended until the client closes it (RFC 9112 §9.6), and discards what is read. If it was closed
 * at once, the kernel would reset it for what the client has sent and the server has not read, such as the end of TLS, and drop responses
 * that the client has not received yet.
 */
export function linger(socket: Socket): void {
  destroyAfter(socket, LINGER);
  socket.once("end", () => socket.destroySoon()).resume();
}

/** Makes `destroySoon()`, by which Node closes a connection after its last response, linger if the client has not closed its side. */
export function lingerOnClose(socket: Socket): void {
  const destroySoon = socket.destroySoon.bind(socket);
  let isLingering = false;
  socket.destroySoon = () => {
    if (!isLingering && socket.writable && !socket.readableEnded) {
      isLingering = true;
      socket.end();
      // What follows the last response is not a request.
      socket.removeAllListeners("data");
      linger(socket);
    } else if (!isLingering || socket.readableEnded) destroySoon();
  };
}

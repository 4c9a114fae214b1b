import type { Socket } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { type Certificate, type Decided, destroy, type Entry } from "./entry.ts";

/**
 * The entry with TLS: ALPN tells, and a client without it speaks HTTP/1.1 (RFC 9113 §3.2). A handshake that fails or takes
 * longer than `timeout` milliseconds ends the connection. Throws Node's error if the certificate cannot be used.
 */
export function createTlsEntry(certificate: Certificate, timeout: number, decided: Decided): Entry {
  const server = createServer({ ...certificate, handshakeTimeout: timeout, ALPNProtocols: ["h2", "http/1.1"] });
  const accepted = new Set<Socket>();
  const secured = new Set<TLSSocket>();
  server.on("secureConnection", (socket) => {
    keepWhileOpen(secured, socket);
    decided(socket, socket.alpnProtocol === "h2" ? "http2" : "http1");
  });
  server.on("tlsClientError", (_, socket) => socket.destroy());
  return {
    accept(socket) {
      keepWhileOpen(accepted, socket);
      socket.allowHalfOpen = false;
      server.emit("connection", socket);
    },
    drop() {
      const done = new Set([...secured].map(peerOf));
      [...accepted].filter((socket) => !done.has(peerOf(socket))).forEach(destroy);
    },
  };
}

function keepWhileOpen<S extends Socket>(sockets: Set<S>, socket: S): void {
  sockets.add(socket);
  socket.once("close", () => sockets.delete(socket));
}

/** Node does not tell which TCP socket is under a TLS socket; the client's address, which both know, does. */
function peerOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}

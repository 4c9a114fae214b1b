import type { Socket } from "node:net";
import { createServer } from "node:tls";
import { storeSubject } from "../wire/client-certificate.ts";
import { lingerOnClose } from "./closing.ts";
import { type Protocol, sniff } from "./protocol-detection.ts";

/** Detects the protocol of new TCP connections. `drop` destroys those whose protocol is not known yet. */
export type Acceptor = ReturnType<typeof createPlainAcceptor>;

/** A certificate chain and its private key, both in PEM. */
export interface Certificate {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** The CA that verifies certificates of clients; without it none is requested. A client without one may connect nevertheless. */
  readonly clientCa?: string | Buffer | undefined;
}

/** Called once for a connection; under TLS `socket` is the TLS socket. */
type Decided = (socket: Socket, protocol: Protocol) => void;

/** Creates the acceptor without TLS: the first bytes decide (RFC 9113 §3.3, prior knowledge). `timeout` in milliseconds. */
export function createPlainAcceptor(timeout: number, decided: Decided) {
  const undecided = new Set<Socket>();
  return {
    accept(socket: Socket): void {
      // Node's check of slow clients covers a connection only once HTTP/1.1 has it.
      const timer = setTimeout(() => socket.destroy(), timeout);
      const settle = () => {
        clearTimeout(timer);
        undecided.delete(socket);
      };
      undecided.add(socket);
      socket.once("close", settle);
      sniff(socket, (protocol) => {
        socket.off("close", settle);
        settle();
        decided(socket, protocol);
      });
    },
    drop: (): void => undecided.forEach(destroy),
  };
}

/**
 * Creates the acceptor with TLS: ALPN decides, and a client without it uses HTTP/1.1 (RFC 9113 §3.2). A handshake that fails or exceeds
 * `timeout` milliseconds closes the connection. A client that closes its side after a request gets its response (RFC 8446 §6.1). Throws
 * Node's error if the certificate is unusable.
 */
export function createTlsAcceptor(certificate: Certificate, timeout: number, decided: Decided): Acceptor {
  const { cert, key, clientCa } = certificate;
  const client = clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: false };
  const server = createServer({ cert, key, ...client, handshakeTimeout: timeout, ALPNProtocols: ["h2", "http/1.1"] });
  const undecided = new Map<string, Socket>();
  server.on("secureConnection", (socket) => {
    undecided.delete(peerOf(socket));
    if (clientCa !== undefined) storeSubject(socket);
    // As with a plain connection, only a handshake ends when the client closes its side.
    socket.allowHalfOpen = true;
    const protocol = socket.alpnProtocol === "h2" ? "http2" : "http1";
    if (protocol === "http1") lingerOnClose(socket);
    decided(socket, protocol);
  });
  server.on("tlsClientError", (_, socket) => socket.destroy());
  return {
    accept(socket) {
      const peer = peerOf(socket);
      undecided.set(peer, socket);
      socket.once("close", () => undecided.get(peer) === socket && undecided.delete(peer));
      socket.allowHalfOpen = false;
      server.emit("connection", socket);
    },
    drop: () => undecided.forEach(destroy),
  };
}

/** Node does not expose the TCP socket under a TLS socket; the client's address, which both have, identifies it. */
function peerOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}

export function destroy(socket: Socket): void {
  socket.destroy();
}

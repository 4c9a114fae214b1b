import type { Socket } from "node:net";
import { createServer } from "node:tls";
import { storeSubject } from "../wire/client-certificate.ts";
import { lingerOnClose } from "./closing.ts";

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

export type Protocol = "http1" | "http2";

/** The first bytes of every HTTP/2 client (RFC 9113 §3.4). No HTTP/1 request starts with them: PRI is reserved for it. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Returns the protocol of a connection's first bytes; undefined while they are an incomplete HTTP/2 preface. */
export function protocolOf(head: Uint8Array): Protocol | undefined {
  const length = Math.min(head.length, PREFACE.length);
  if (PREFACE.compare(head, 0, length, 0, length) !== 0) return "http1";
  return length === PREFACE.length ? "http2" : undefined;
}

const LINE_WITHOUT_HTTP = /^(?!.*HTTP\/)[ -~]+\r?\n/;

/** Returns whether the first line is text without an HTTP version, such as an invalid preface (RFC 9113 §3.4) or another protocol. */
export function namesNoHttp(head: Buffer): boolean {
  const end = head.indexOf("\n") + 1;
  return end > 0 && LINE_WITHOUT_HTTP.test(head.toString("latin1", 0, end));
}

/**
 * Reads the first bytes of `socket` until the protocol is known, unshifts them and calls `decided`. Destroys a socket that ends before,
 * or whose protocol is not HTTP. Nothing is unshifted earlier: the socket would be readable again at once, and half a preface would spin.
 */
export function sniff(socket: Socket, decided: (protocol: Protocol) => void): void {
  let head: Buffer = Buffer.alloc(0);
  const read = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
    const protocol = protocolOf(head);
    if (protocol === undefined) return;
    if (protocol === "http1" && namesNoHttp(head)) {
      abandon();
      return;
    }
    socket.off("readable", read).off("end", abandon).off("error", abandon);
    socket.unshift(head);
    decided(protocol);
  };
  const abandon = () => socket.destroy();
  socket.on("readable", read).on("end", abandon).on("error", abandon);
}

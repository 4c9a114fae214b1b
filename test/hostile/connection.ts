import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** A client's connection. */
export interface Connection {
  readonly socket: Socket;
  /** Resets the TCP connection, without a TLS close_notify. */
  reset(): void;
}

/** Opens a connection to a server on this machine. `alpn` is the protocol to negotiate over TLS; without it there is no TLS. */
export function openConnection(port: number, alpn: "http/1.1" | "h2" | undefined): Connection {
  const tcp = connect({ port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
  const reset = () => void tcp.resetAndDestroy();
  if (alpn === undefined) return { socket: tcp, reset };
  // The test certificate is not verified. The TLS socket reports the events of the TCP connection.
  tcp.on("error", () => {});
  const socket = connectTls({ socket: tcp, ALPNProtocols: [alpn], rejectUnauthorized: false });
  return { socket, reset };
}

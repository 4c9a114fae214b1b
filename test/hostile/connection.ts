import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** A connection of a client. */
export interface Connection {
  readonly socket: Socket;
  /** Resets the TCP connection, without the farewell of TLS. */
  reset(): void;
}

/** Opens a connection to a server of this machine. `alpn` is the protocol that TLS is to be spoken for; without it there is no TLS. */
export function openConnection(port: number, alpn: "http/1.1" | "h2" | undefined): Connection {
  const tcp = connect({ port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
  const reset = () => void tcp.resetAndDestroy();
  if (alpn === undefined) return { socket: tcp, reset };
  // The certificate is for tests. The TLS socket reports the events of the TCP connection.
  tcp.on("error", () => {});
  const socket = connectTls({ socket: tcp, ALPNProtocols: [alpn], rejectUnauthorized: false });
  return { socket, reset };
}

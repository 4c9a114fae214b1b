import type { Socket } from "node:net";
import { type Protocol, sniff } from "./preface.ts";

/** What stands between a new TCP connection and the protocol it will speak. */
export interface Entry {
  /** Takes a new connection. */
  accept(socket: Socket): void;
  /** Destroys the connections whose protocol is not known yet. */
  drop(): void;
}

/** A certificate, with those between it and the root, and its private key: both in PEM. */
export interface Certificate {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
}

/** Called once for a connection; under TLS `socket` is the TLS socket. */
export type Decided = (socket: Socket, protocol: Protocol) => void;

/** The entry without TLS: the first bytes tell (RFC 9113 §3.3, prior knowledge). `timeout` in milliseconds. */
export function createPlainEntry(timeout: number, decided: Decided): Entry {
  const undecided = new Set<Socket>();
  return {
    accept(socket) {
      // Node's own check of slow clients sees a connection only when HTTP/1.1 has it.
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
    drop: () => undecided.forEach(destroy),
  };
}

export function destroy(socket: Socket): void {
  socket.destroy();
}

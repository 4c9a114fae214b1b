import type { Socket } from "node:net";

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

/** Escapes from %20 to %7E but for %25. */
const PRINTABLE = /%(2[0-46-9A-F]|[3-6][0-9A-F]|7[0-9A-E])/g;

/**
 * Connect escapes `grpc-message` as a part of a URL. gRPC escapes only what is not printable ASCII, and `%` (PROTOCOL-HTTP2,
 * "Percent-Byte-Unencoded"), and some clients, such as that of Node, unescape no more than they must: they would show `name%3A`.
 */
export function unescapeMessage(trailer: Headers): void {
  const message = trailer.get("grpc-message");
  if (message === null) return;
  const plain = message.replace(PRINTABLE, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  trailer.set("grpc-message", plain);
}

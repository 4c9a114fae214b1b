import type { Socket } from "node:net";
import { openClientSocket } from "../../src/postgres/connection/client-socket.ts";
import { parseConnectionUrl, socketFile } from "../../src/postgres/connection/connection-url.ts";

/** Options of the `postgres` client; its types do not know `socket`. */
export interface SocketOptions {
  readonly path?: string;
  readonly socket?: () => Socket;
}

/** Returns the options with which the `postgres` client connects to the URL of a Unix socket; none for a URL with a host name. */
export function socketOptions(url: string): SocketOptions {
  const [host] = parseConnectionUrl(url).hosts;
  if (host === undefined || !host.name.startsWith("/")) return {};
  const path = socketFile(host);
  return { path, socket: () => openClientSocket({ path }) };
}

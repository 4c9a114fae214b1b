import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Linked, LinkedList } from "../../lib/linked-list.ts";

interface OpenResponse extends Linked<OpenResponse> {
  readonly response: ServerResponse;
}

/**
 * Tracks the HTTP/1.1 responses in flight. Node keeps no list of them, which a graceful shutdown needs. `closed` is called after each
 * response that has ended.
 */
export function trackResponses(closed: () => unknown) {
  const open = new LinkedList<OpenResponse>();
  const all = () => Iterator.from(open).map(({ response }) => response);
  return {
    add(response: ServerResponse): void {
      const item: OpenResponse = { response, older: undefined, newer: undefined };
      open.add(item);
      response.on("close", () => {
        open.remove(item);
        closed();
      });
    },
    /** Returns the response in flight to the last complete request of this connection. */
    lastOf: (socket: Socket) => [...all()].findLast(({ req }) => req.socket === socket && req.complete),
    hasIncomplete: (socket: Socket) => all().some(({ req }) => req.socket === socket && !req.complete),
    /** Returns whether a finished response has unsent bytes. */
    flushing: () => all().some((response) => response.writableEnded && !response.writableFinished),
    /** Adds `Connection: close` (RFC 9112 §9.6) to the last response of each connection, unless its header has been sent. */
    makeLast(): void {
      const last = new Map(all().map((response) => [response.req.socket, response]));
      for (const response of last.values()) response.shouldKeepAlive = false;
    },
  };
}

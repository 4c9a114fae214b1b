import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Linked, LinkedList } from "../../lib/linked-list.ts";

interface OpenResponse extends Linked<OpenResponse> {
  readonly response: ServerResponse;
}

/** The HTTP/1.1 responses in flight. Node keeps no list of them, which a graceful shutdown needs. */
export class InFlightResponses {
  readonly #open = new LinkedList<OpenResponse>();
  readonly #closed: () => unknown;

  /** `closed` is called after each response that has ended. */
  constructor(closed: () => unknown) {
    this.#closed = closed;
  }

  add(response: ServerResponse): void {
    const open: OpenResponse = { response, older: undefined, newer: undefined };
    this.#open.add(open);
    response.on("close", () => {
      this.#open.remove(open);
      this.#closed();
    });
  }

  /** Returns the response in flight to the last complete request of this connection. */
  lastOf(socket: Socket): ServerResponse | undefined {
    return [...this.#all()].findLast(({ req }) => req.socket === socket && req.complete);
  }

  hasIncomplete(socket: Socket): boolean {
    return this.#all().some(({ req }) => req.socket === socket && !req.complete);
  }

  /** Returns whether a finished response has unsent bytes. */
  flushing(): boolean {
    return this.#all().some((response) => response.writableEnded && !response.writableFinished);
  }

  /** Adds `Connection: close` (RFC 9112 §9.6) to the last response of each connection, unless its header has been sent. */
  makeLast(): void {
    const last = new Map([...this.#all()].map((response) => [response.req.socket, response]));
    for (const response of last.values()) response.shouldKeepAlive = false;
  }

  *#all(): Generator<ServerResponse> {
    for (const { response } of this.#open) yield response;
  }
}

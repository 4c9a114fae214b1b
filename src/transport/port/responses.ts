import type { ServerResponse } from "node:http";

/** The HTTP/1.1 responses under way. Node keeps no list of them, and closing without loss needs one. */
export class OpenResponses {
  readonly #open = new Set<ServerResponse>();
  readonly #closed: () => void;

  /** `closed` is called after each response that has come to its end. */
  constructor(closed: () => void) {
    this.#closed = closed;
  }

  add(response: ServerResponse): void {
    this.#open.add(response);
    response.once("close", () => {
      this.#open.delete(response);
      this.#closed();
    });
  }

  /** Whether bytes of a finished response still wait to be sent. */
  flushing(): boolean {
    return this.#open.values().some((response) => response.writableEnded && !response.writableFinished);
  }

  /** Those whose header is not sent yet will say `Connection: close` (RFC 9112 §9.6). */
  makeLast(): void {
    for (const response of this.#open) response.shouldKeepAlive = false;
  }
}

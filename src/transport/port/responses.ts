import type { ServerResponse } from "node:http";

/** The HTTP/1.1 responses under way. Node keeps no list of them, and closing without loss needs one. */
export class OpenResponses {
  readonly #open = new Set<ServerResponse>();
  readonly #onClose: (this: ServerResponse) => void;

  /** `closed` is called after each response that has come to its end. */
  constructor(closed: () => void) {
    const open = this.#open;
    // One function for all responses, as this is done for every request.
    this.#onClose = function onClose() {
      open.delete(this);
      closed();
    };
  }

  add(response: ServerResponse): void {
    this.#open.add(response);
    response.on("close", this.#onClose);
  }

  /** Whether bytes of a finished response still wait to be sent. */
  flushing(): boolean {
    return this.#open.values().some((response) => response.writableEnded && !response.writableFinished);
  }

  /**
   * The last response of each connection, the last of several when requests are pipelined, will say `Connection: close`
   * (RFC 9112 §9.6) if its header is not sent yet.
   */
  makeLast(): void {
    const last = new Map([...this.#open].map((response) => [response.req.socket, response]));
    for (const response of last.values()) response.shouldKeepAlive = false;
  }
}

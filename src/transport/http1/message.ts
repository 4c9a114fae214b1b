import type { Head } from "./head.ts";
import type { Http1Response } from "./response.ts";

/** One request, whole, and its response. */
export class Http1Message {
  readonly head: Head;
  /** A part of what was read: it is not changed later. */
  readonly body: Uint8Array;
  readonly #send: (message: Http1Message, response: Http1Response) => void;
  #listeners: (() => void)[] | undefined;
  #isGone = false;

  constructor(head: Head, body: Uint8Array, send: (message: Http1Message, response: Http1Response) => void) {
    this.head = head;
    this.body = body;
    this.#send = send;
  }

  /** To be called once. To a caller that went away nothing is sent. */
  respond(response: Http1Response): void {
    this.#send(this, response);
  }

  /** Called when the caller goes away before the response. */
  onGone(listener: () => void): void {
    if (this.#isGone) listener();
    else if (this.#listeners === undefined) this.#listeners = [listener];
    else this.#listeners.push(listener);
  }

  /** For the connection, which is lost. */
  lose(): void {
    this.#isGone = true;
    for (const listener of this.#listeners ?? []) listener();
  }
}

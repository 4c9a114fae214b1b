import type { Socket } from "node:net";
import type { Headers } from "../../headers.ts";
import { type CallContext, FastCall } from "../call.ts";
import type { Answer, FastRoute } from "../route.ts";

/** Writes the response to the call that a connection has in flight. */
export type Send = (call: Http1Call, answer: Answer) => void;

/** A call over HTTP/1.1, complete when it is created. */
export class Http1Call extends FastCall {
  readonly #send: Send;
  readonly #socket: Socket;

  constructor(route: FastRoute, context: CallContext, headers: Headers, body: Uint8Array, send: Send, socket: Socket) {
    super(route, context, headers);
    this.#send = send;
    this.#socket = socket;
    this.body = body;
  }

  get peerAddress(): string {
    return this.#socket.remoteAddress ?? "";
  }

  protected respond(answer: Answer): void {
    this.#send(this, answer);
  }
}

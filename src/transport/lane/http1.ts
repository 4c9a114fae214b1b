import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http1Message } from "../http1/message.ts";
import { readWhole } from "./body.ts";
import type { Answer, BodyReader, Exchange } from "./exchange.ts";

/** HTTP/1.1 of the usual form, whole. */
export class MessageExchange implements Exchange {
  readonly #message: Http1Message;

  constructor(message: Http1Message) {
    this.#message = message;
  }

  header(name: string): string | undefined {
    return this.#message.head.headers[name];
  }

  readBody(limit: number, reader: BodyReader): void {
    const { body } = this.#message;
    if (body.length > limit) reader.onTooLarge();
    else reader.onBody(body);
  }

  dropBody(): void {}

  onGone(listener: () => void): void {
    this.#message.onGone(listener);
  }

  respond(answer: Answer): void {
    this.#message.respond(answer);
  }
}

/** HTTP/1.1 of any form, over the objects of `node:http`. */
export class Http1Exchange implements Exchange {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.#response = response;
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  }

  readBody(limit: number, reader: BodyReader): void {
    if (Number(this.#request.headers["content-length"]) > limit) {
      this.dropBody();
      reader.onTooLarge();
    } else readWhole(this.#request, limit, reader);
  }

  dropBody(): void {
    this.#request.resume();
  }

  onGone(listener: () => void): void {
    const response = this.#response;
    response.once("close", () => {
      if (!response.writableEnded) listener();
    });
    if (response.destroyed) listener();
  }

  respond({ status, headers, body }: Answer): void {
    const response = this.#response;
    if (response.destroyed) return;
    response.writeHead(status, headers);
    response.end(body);
  }
}

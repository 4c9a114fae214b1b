import type { IncomingMessage, ServerResponse } from "node:http";
import { readWhole } from "./body.ts";
import type { Answer, BodyReader, Exchange } from "./exchange.ts";

/** HTTP/1.1, over the objects of `node:http`. */
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

import { Agent, type IncomingMessage, request } from "node:http";
import { type Answer, LOST, REQUEST_TIMEOUT } from "./answer.ts";

/** A client of JSON over HTTP/1.1 with persistent connections. */
export class RestClient {
  readonly #agent: Agent;
  readonly #port: number;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(port: number, headers = {}, agent = new Agent({ keepAlive: true, maxSockets: 64 })) {
    this.#port = port;
    this.#headers = headers;
    this.#agent = agent;
  }

  /** Returns a client that sends these headers too, over the same connections. */
  withHeaders(headers: Readonly<Record<string, string>>): RestClient {
    return new RestClient(this.#port, { ...this.#headers, ...headers }, this.#agent);
  }

  /** Never rejects: resolves to `LOST` if the connection breaks. */
  send(method: string, path: string, body?: unknown, more: Record<string, string> = {}): Promise<Answer> {
    const text = body === undefined ? "" : JSON.stringify(body);
    const headers = { ...(text === "" ? {} : { "content-type": "application/json" }), ...this.#headers, ...more };
    return new Promise((resolve) => {
      const options = { host: "127.0.0.1", port: this.#port, method, path, headers, agent: this.#agent };
      const call = request(options, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => resolve(read(response, Buffer.concat(chunks).toString())));
        response.on("error", () => resolve(LOST));
        response.on("aborted", () => resolve(LOST));
      });
      const timer = setTimeout(() => call.destroy(), REQUEST_TIMEOUT);
      call.on("error", () => resolve(LOST));
      call.on("close", () => {
        clearTimeout(timer);
        resolve(LOST);
      });
      call.end(text);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

function read({ statusCode: status = 0, headers }: IncomingMessage, text: string): Answer {
  const retryAfter = headers["retry-after"];
  try {
    return { status, body: JSON.parse(text), retryAfter };
  } catch {
    return { status, body: undefined, retryAfter };
  }
}

import { Agent, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: each test asserts the shape.
  json(): any;
}

export interface Message {
  readonly headers?: Readonly<Record<string, string>>;
  /** Strings and bytes are sent unchanged, without a content type; anything else as JSON. */
  readonly body?: unknown;
}

const agent = new Agent({ keepAlive: true });

/** Sends `GET /path` unchanged; fetch would normalize the path. */
export function send(port: number, line: string, message: Message = {}): Promise<Answer> {
  const [method = "", path = ""] = line.split(" ");
  const { body } = message;
  const isRaw = typeof body === "string" || body instanceof Uint8Array;
  const payload = body === undefined || isRaw ? body : JSON.stringify(body);
  const type = body === undefined || isRaw ? {} : { "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const request = httpRequest({ port, method, path, agent, headers: { ...type, ...message.headers } });
    // Node does not send the length for methods that usually have no body.
    if (payload !== undefined && !request.hasHeader("transfer-encoding")) {
      request.setHeader("content-length", Buffer.byteLength(payload));
    }
    request.on("error", reject);
    request.on("response", async (response) => {
      const { statusCode: status = 0, headers } = response;
      const content = await text(response);
      resolve({ status, headers, text: content, json: () => JSON.parse(content) });
    });
    request.end(payload);
  });
}

/** Sends bytes on a new connection and returns everything received. */
export async function sendRaw(port: number, lines: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.write(lines);
  return text(socket);
}

import { Agent, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it, it says.
  json(): any;
}

export interface Message {
  readonly headers?: Readonly<Record<string, string>>;
  /** Text and bytes go as they are, without a content type; anything else as JSON. */
  readonly body?: unknown;
}

const agent = new Agent({ keepAlive: true });

/** Sends `GET /path` as it is written: unlike fetch, it does not change the path. */
export function send(port: number, line: string, message: Message = {}): Promise<Answer> {
  const [method = "", path = ""] = line.split(" ");
  const { body } = message;
  const isRaw = typeof body === "string" || body instanceof Uint8Array;
  const payload = body === undefined || isRaw ? body : JSON.stringify(body);
  const type = body === undefined || isRaw ? {} : { "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const request = httpRequest({ port, method, path, agent, headers: { ...type, ...message.headers } });
    // Node does not say the length for a method that has no body as a rule.
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

/** Sends bytes as they are on a connection of their own and resolves to all that comes back. */
export async function sendRaw(port: number, lines: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.write(lines);
  return text(socket);
}

import { once } from "node:events";
import http from "node:http";
import { listenLocally } from "./listen.ts";

/** A request that a receiver has got. */
export interface ReceivedWebhook {
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: like the answers of REST in other tests.
  readonly body: any;
}

/** Answers a request: with a status and header fields, at once or when the promise resolves. */
export type Answering = (received: ReceivedWebhook) => Reply | Promise<Reply>;
type Reply = number | { readonly status: number; readonly headers: Readonly<Record<string, string>> };

/** A receiver of webhooks over HTTP on a port of 127.0.0.1, which answers 204 unless told otherwise. */
export async function startReceiver(answering: Answering = () => 204) {
  const received: ReceivedWebhook[] = [];
  const receiver = { received, answering, url: "", close: async () => {} };
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      // The sender was killed.
      return;
    }
    const text = Buffer.concat(chunks).toString("utf8");
    const one = { headers: request.headers as Record<string, string>, text, body: JSON.parse(text) };
    received.push(one);
    const reply = await receiver.answering(one);
    const { status, headers } = typeof reply === "number" ? { status: reply, headers: {} } : reply;
    response.writeHead(status, headers).end();
  });
  receiver.url = `http://127.0.0.1:${await listenLocally(server)}/hooks`;
  receiver.close = async () => {
    server.close();
    server.closeAllConnections();
    await once(server, "close").catch(() => {});
  };
  return receiver;
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import type { Json } from "./rest.ts";

/** Observations of a client of several servers. */
export interface Seen {
  answered: number;
  /** Refused connections, after each of which the request was sent to the next server. */
  refused: number;
}

/** Posts JSON to the next server. Rejects if the request may have been lost. */
export type Post = (path: string, body: Json) => Promise<{ readonly status: number; readonly body: Json }>;

export interface ReconnectingClient {
  readonly post: Post;
  readonly seen: Seen;
  close(): void;
}

/**
 * Calls each server in turn over HTTP/1.1 with Node's client, over persistent connections or a new one for each request. A request is
 * sent to the next server only if the connection failed, so it is never sent twice.
 */
export function reconnectingClient(urls: readonly string[], keepAlive = true): ReconnectingClient {
  // The connection that was idle for longest is used first. With the default, the one that was used last, others could be idle for longer than a
  // server drains its connections, and a request could cross the close.
  const agent = new Agent({ keepAlive, maxSockets: 8, scheduling: "fifo" });
  const seen: Seen = { answered: 0, refused: 0 };
  let turn = 0;
  const post: Post = async (path, body) => {
    const first = turn++;
    for (let attempt = 0; attempt < urls.length; attempt++) {
      const url = new URL(path, urls[(first + attempt) % urls.length]);
      try {
        const answer = await postOnce(agent, url, body);
        seen.answered++;
        return answer;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).syscall !== "connect") throw error;
        seen.refused++;
      }
    }
    throw new Error("no server accepts connections");
  };
  return { post, seen, close: () => agent.destroy() };
}

async function postOnce(agent: Agent, url: URL, body: Json) {
  const bytes = JSON.stringify(body);
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(bytes) };
  const sent = request(url, { agent, method: "POST", headers });
  sent.end(bytes);
  const [response]: IncomingMessage[] = await once(sent, "response");
  if (response === undefined) throw new Error("no response");
  return { status: response.statusCode ?? 0, body: JSON.parse(await text(response)) };
}

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { listenLocally } from "../support/listen.ts";
import { pairsOf, type Received } from "./application.ts";

/** What is answered; `never`: the connection stays open without a response; `reset`: it is closed. */
export type Verdict =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  | "never"
  | "reset";

/** A server in Keyhold's place, for the answers and failures that Keyhold cannot be brought to in a test. */
export interface Authority {
  readonly address: string;
  /** What gateways asked since the last `answer`. */
  readonly asked: readonly Received[];
  answer(verdict: Verdict): void;
  close(): Promise<void>;
}

export async function startAuthority(): Promise<Authority> {
  const asked: Received[] = [];
  let verdict: Verdict = { status: 503 };
  const server = createServer(async (request, response) => {
    // Health checks of gateways.
    if (request.url === "/health/ready") return void response.end();
    asked.push(await describe(request));
    give(verdict, request, response);
  });
  return {
    address: `127.0.0.1:${await listenLocally(server)}`,
    asked,
    answer: (next) => {
      asked.splice(0);
      verdict = next;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function give(verdict: Verdict, request: IncomingMessage, response: ServerResponse): void {
  if (verdict === "never") return;
  if (verdict === "reset") {
    request.socket.resetAndDestroy();
    return;
  }
  const { status, headers = {}, body = "" } = verdict;
  response.writeHead(status, { "cache-control": "no-store", ...headers }).end(body);
}

async function describe(request: IncomingMessage): Promise<Received> {
  const { method = "", url = "", rawHeaders } = request;
  return { method, target: url, headers: pairsOf(rawHeaders), body: await text(request), isUpgrade: false };
}

import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { create, toBinary } from "@bufbuild/protobuf";
import { base64Encode } from "@bufbuild/protobuf/wire";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";

/** What becomes of one request: handed on; handed on, and its answer lost; or refused with this reason, unread by the server. */
export type Fate = "pass" | "lose the answer" | { readonly reason: string; readonly retryAfter?: string };

export interface Sent {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A proxy in front of the real server that fails in the order that a test chooses, and then forwards everything. */
export interface FlakyFront {
  readonly url: string;
  readonly sent: readonly Sent[];
  /** Forgets what was sent. */
  next(...fates: Fate[]): void;
  close(): Promise<void>;
}

export async function startFlakyFront(server: { readonly url: string }): Promise<FlakyFront> {
  const fates: Fate[] = [];
  const sent: Sent[] = [];
  const front = createServer(async (request, response) => {
    const body = await buffer(request);
    sent.push({ path: request.url ?? "", headers: request.headers, body });
    await meet(fates.shift() ?? "pass", server.url, request, body, response);
  }).listen(0, "127.0.0.1");
  await once(front, "listening");
  return {
    url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`,
    sent,
    next: (...more) => {
      sent.length = 0;
      fates.splice(0, fates.length, ...more);
    },
    close: async () => {
      front.closeAllConnections();
      front.close();
      await once(front, "close");
    },
  };
}

async function meet(fate: Fate, url: string, request: IncomingMessage, body: Buffer, response: ServerResponse) {
  if (typeof fate === "object") return refuse(fate, response);
  const answer = await forward(url, request, body);
  if (fate === "lose the answer") return response.destroy();
  response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
  return response.end(Buffer.from(await answer.arrayBuffer()));
}

function forward(url: string, { method = "", url: path, headers }: IncomingMessage, body: Buffer): Promise<Response> {
  const kept = Object.entries(headers).filter(([name]) => /^(?:content-type|authorization|connect-.*)$/.test(name));
  const init = { method, headers: kept.map(([name, value]) => [name, String(value)] as [string, string]) };
  return fetch(`${url}${path}`, method === "POST" ? { ...init, body: new Uint8Array(body) } : init);
}

/** An error as Connect has it for unary calls, with the details that the server gives. */
function refuse({ reason, retryAfter }: Exclude<Fate, string>, response: ServerResponse): ServerResponse {
  const info = toBinary(ErrorInfoSchema, create(ErrorInfoSchema, { reason, domain: "keyhold" }));
  const details = [{ type: ErrorInfoSchema.typeName, value: base64Encode(info, "std_raw") }];
  response.writeHead(503, {
    "content-type": "application/json",
    ...(retryAfter === undefined ? {} : { "retry-after": retryAfter }),
  });
  return response.end(JSON.stringify({ code: "unavailable", message: "not now", details }));
}

import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { create, toBinary } from "@bufbuild/protobuf";
import { base64Encode } from "@bufbuild/protobuf/wire";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { listenLocally } from "../support/listen.ts";

/** The outcome of a request: forwarded; forwarded with its response lost; or rejected with this reason before the server receives it. */
export type Outcome = "pass" | "lose the response" | { readonly reason: string; readonly retryAfter?: string };

export interface Sent {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A proxy in proxy of the real server that fails in the order that a test defines, and then forwards everything. */
export interface FlakyProxy {
  readonly url: string;
  readonly sent: readonly Sent[];
  /** Clears the recorded requests. */
  next(...fates: Outcome[]): void;
  close(): Promise<void>;
}

export async function startFlakyProxy(server: { readonly url: string }): Promise<FlakyProxy> {
  const fates: Outcome[] = [];
  const sent: Sent[] = [];
  const proxy = createServer(async (request, response) => {
    const body = await buffer(request);
    sent.push({ path: request.url ?? "", headers: request.headers, body });
    await meet(fates.shift() ?? "pass", server.url, request, body, response);
  });
  return {
    url: `http://127.0.0.1:${await listenLocally(proxy)}`,
    sent,
    next: (...more) => {
      sent.length = 0;
      fates.splice(0, fates.length, ...more);
    },
    close: async () => {
      proxy.closeAllConnections();
      proxy.close();
      await once(proxy, "close");
    },
  };
}

async function meet(outcome: Outcome, url: string, request: IncomingMessage, body: Buffer, response: ServerResponse) {
  if (typeof outcome === "object") return refuse(outcome, response);
  const answer = await forward(url, request, body);
  if (outcome === "lose the response") return response.destroy();
  response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
  return response.end(Buffer.from(await answer.arrayBuffer()));
}

function forward(url: string, { method = "", url: path, headers }: IncomingMessage, body: Buffer): Promise<Response> {
  const kept = Object.entries(headers).filter(([name]) => /^(?:content-type|authorization|connect-.*)$/.test(name));
  const init = { method, headers: kept.map(([name, value]) => [name, String(value)] as [string, string]) };
  return fetch(`${url}${path}`, method === "POST" ? { ...init, body: new Uint8Array(body) } : init);
}

/** Returns a Connect error of a unary call, with the details of the server. */
function refuse({ reason, retryAfter }: Exclude<Outcome, string>, response: ServerResponse): ServerResponse {
  const info = toBinary(ErrorInfoSchema, create(ErrorInfoSchema, { reason, domain: "keyhold" }));
  const details = [{ type: ErrorInfoSchema.typeName, value: base64Encode(info, "std_raw") }];
  response.writeHead(503, {
    "content-type": "application/json",
    ...(retryAfter === undefined ? {} : { "retry-after": retryAfter }),
  });
  return response.end(JSON.stringify({ code: "unavailable", message: "not now", details }));
}

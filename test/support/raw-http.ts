import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:http2";
import { text } from "node:stream/consumers";
import type { Json } from "./rest.ts";

export interface RawAnswer {
  readonly status: number;
  readonly body: Json;
  header(name: string): string | undefined;
}

export interface RawRequest {
  readonly path: string;
  readonly method?: string;
  /** Name of the server in the request: `Host`, or `:authority`. */
  readonly host: string;
  /** Sent unchanged, including duplicate names. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
}

/** Sends a request with headers that `fetch` does not allow. The response must be JSON. */
export type SendRaw = (url: string, request: RawRequest) => Promise<RawAnswer>;

export const http1: SendRaw = async (url, { path, method = "GET", host, headers = [] }) => {
  const outgoing = request(url + path, { method, agent: false, headers: [["Host", host], ...headers].flat() }).end();
  const [response]: IncomingMessage[] = await once(outgoing, "response");
  if (response === undefined) throw new Error("no response");
  const body = JSON.parse(await text(response));
  return { status: response.statusCode ?? 0, body, header: (name) => response.headers[name]?.toString() };
};

export const http2: SendRaw = async (url, { path, method = "GET", host, headers = [] }) => {
  const session = connect(url);
  try {
    const pseudo = { ":method": method, ":path": path, ":authority": host };
    const stream = session.request({ ...pseudo, ...Object.fromEntries(headers) });
    const [[response], body] = await Promise.all([once(stream, "response"), text(stream)]);
    return { status: Number(response[":status"]), body: JSON.parse(body), header: (name) => response[name] };
  } finally {
    session.destroy();
  }
};

import { once } from "node:events";
import { type IncomingMessage, request as requestPlain } from "node:http";
import { type RequestOptions, request as requestTls } from "node:https";
import { text } from "node:stream/consumers";
import type { Json } from "./rest.ts";

export const FORWARD_AUTH = "/v2alpha1/forwardAuth";

/** Names and values, sent unchanged, also if a name occurs twice. */
export type Fields = readonly (readonly [name: string, value: string])[];

/** Returns the fields of lines such as `X-Api-Key: a`. */
export function fields(...lines: string[]): Fields {
  return lines.map((line) => line.split(/: (.*)/s, 2) as [string, string]);
}

export interface Asked {
  readonly method?: string;
  /** What follows the path of the endpoint. */
  readonly suffix?: string;
  readonly headers?: Fields;
  readonly body?: string;
  /** The address that the gateway calls from. */
  readonly from?: string;
  /** Options of TLS, such as the client certificate. */
  readonly tls?: Pick<RequestOptions, "ca" | "cert" | "key">;
}

export interface Decision {
  readonly status: number;
  /** By lower-case name; several fields are joined by Node. */
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  /** Undefined if the text is empty. */
  readonly body: Json;
  /** `metadata.error_code` or the reason of the error; undefined for 200. */
  readonly reason: string | undefined;
}

/** Asks a server about a request, as a gateway does. */
export async function forwardAuth({ url }: { readonly url: string }, asked: Asked = {}): Promise<Decision> {
  const { method = "GET", suffix = "", headers = [], body, from, tls } = asked;
  const length: Fields = body === undefined ? [] : [["Content-Length", String(Buffer.byteLength(body))]];
  const request = url.startsWith("https:") ? requestTls : requestPlain;
  const outgoing = request(url, {
    ...tls,
    ...{ method, path: FORWARD_AUTH + suffix, agent: false },
    ...(from !== undefined && { localAddress: from }),
    headers: [["Host", new URL(url).host], ...length, ...headers].flat(),
  });
  outgoing.end(body);
  const [response]: IncomingMessage[] = await once(outgoing, "response");
  if (response === undefined) throw new Error("no response");
  const received = await text(response);
  const json: Json = received === "" ? undefined : JSON.parse(received);
  const info = json?.error?.details?.[0];
  const reason = info?.metadata?.error_code ?? info?.reason;
  return { status: response.statusCode ?? 0, headers: response.headers, text: received, body: json, reason };
}

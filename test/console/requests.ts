import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import type { Json } from "../support/rest.ts";

/** What a browser or an attacker sends. Unlike `fetch`, this normalizes no path, and no header is forbidden or added. */
export interface Sent {
  readonly method?: string;
  readonly path: string;
  /** A list has one field for each value. */
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string;
  /** The address of the client. */
  readonly from?: string;
}

export interface Received {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  /** Undefined unless it is JSON. */
  readonly body: Json;
}

export async function send(url: string, { method = "GET", path, headers, body, from }: Sent): Promise<Received> {
  const { hostname, port } = new URL(url);
  const options = { hostname, port, method, path, agent: false, ...(from !== undefined && { localAddress: from }) };
  const outgoing = request({ ...options, headers: { host: new URL(url).host, ...headers } });
  outgoing.end(body);
  const [response]: IncomingMessage[] = await once(outgoing, "response");
  if (response === undefined) throw new Error("no response");
  const received = await text(response);
  const isJson = response.headers["content-type"]?.includes("json") === true && received !== "";
  return {
    ...{ status: response.statusCode ?? 0, headers: response.headers, text: received },
    body: isJson ? JSON.parse(received) : undefined,
  };
}

/** What a browser adds to the calls of a page to its own origin. */
export const SAME_ORIGIN = { "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty" };

export const SESSION = "/console/session";

export const COOKIE = "__Host-keyhold-session";

/** Begins a session as the page does, and returns the field `Set-Cookie`. */
export async function signIn(url: string, credential: string): Promise<string> {
  const headers = { ...SAME_ORIGIN, authorization: `Bearer ${credential}` };
  const { status, headers: received } = await send(url, { method: "POST", path: SESSION, headers });
  expect(status).toBe(204);
  const [field = "", ...others] = received["set-cookie"] ?? [];
  expect(others).toEqual([]);
  return field;
}

/** Returns the pair of a field `Set-Cookie`, as browsers send it. */
export function pairOf(setCookie: string): string {
  return setCookie.split(";")[0] ?? "";
}

/** Returns the sealed session of a new session. */
export async function sealedBy(url: string, credential: string): Promise<string> {
  return pairOf(await signIn(url, credential)).slice(COOKIE.length + 1);
}

/** Returns a call of the page, such as one of `ApiKeysService/RevokeApiKey`, with this field `Cookie`. */
export function rpc(
  cookie: string | null,
  name: string,
  message: Json = {},
): Sent & { headers: Record<string, string> } {
  const headers = { ...SAME_ORIGIN, "content-type": "application/json", "connect-protocol-version": "1" };
  return {
    ...{ method: "POST", path: `/console/api/keyhold.v2alpha1.${name}`, body: JSON.stringify(message) },
    headers: { ...headers, ...(cookie !== null && { cookie }) },
  };
}

import type { Transport } from "@connectrpc/connect";
import { overUnary } from "./transport.ts";

/** A bearer token, or what is asked for one before each call: a file, an identity provider. */
export type TokenSource = string | (() => string | Promise<string>);

/** As RFC 6750 §2.1 has it. */
const BEARER_TOKEN = /^[\w.~+/-]+=*$/;

/** Sends the token with each call that has no `Authorization` of its own. */
export function withToken(transport: Transport, source: TokenSource): Transport {
  if (typeof source === "string") checkToken(source);
  return overUnary(transport, async (method, signal, timeoutMs, header, input, values) => {
    const headers = new Headers(header);
    if (!headers.has("authorization")) headers.set("authorization", `Bearer ${await read(source)}`);
    return transport.unary(method, signal, timeoutMs, headers, input, values);
  });
}

async function read(source: TokenSource): Promise<string> {
  return checkToken(typeof source === "string" ? source : await source());
}

/** Looked at before `Headers` does, whose error would show the token. */
function checkToken(token: string): string {
  if (BEARER_TOKEN.test(token)) return token;
  throw new TypeError("token: must be a bearer token (RFC 6750): no spaces, no line break, not empty");
}

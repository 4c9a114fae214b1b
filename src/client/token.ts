import type { Transport } from "@connectrpc/connect";
import type { RequestHeaders } from "./transport.ts";

/** A bearer token, or a function that returns one for each call, for example from a file or an identity provider. */
export type TokenSource = string | (() => string | Promise<string>);

/** The syntax of RFC 6750 §2.1. */
const BEARER_TOKEN = /^[\w.~+/-]+=*$/;

/** Adds the token to each call without an `Authorization` header. Throws `TypeError` on a malformed token. */
export function withToken(transport: Transport, source: TokenSource): Transport {
  if (typeof source === "string") checkToken(source);
  const read = typeof source === "string" ? () => source : source;
  const authorize = async (header: RequestHeaders) => {
    const headers = new Headers(header);
    if (!headers.has("authorization")) headers.set("authorization", `Bearer ${checkToken(await read())}`);
    return headers;
  };
  return {
    unary: async (method, signal, timeoutMs, header, input, values) =>
      transport.unary(method, signal, timeoutMs, await authorize(header), input, values),
    stream: async (method, signal, timeoutMs, header, input, values) =>
      transport.stream(method, signal, timeoutMs, await authorize(header), input, values),
  };
}

/** Checks the token before `Headers` does, whose error would quote it. */
function checkToken(token: string): string {
  if (BEARER_TOKEN.test(token)) return token;
  throw new TypeError("token: must be a non-empty bearer token (RFC 6750) without spaces or line breaks");
}

import type { FastifyInstance } from "fastify";
import { Refusal } from "./rest/refusal.ts";

/** Names that mean the machine itself (RFC 6761 §6.3, RFC 1122 §3.2.1.3, RFC 4291 §2.5.3), with or without a port. */
const LOOPBACK_NAME = /^(?:(?:[a-z\d-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/**
 * Refuses what calls the server by any other name, or from a web page of another place. A server without authentication relies on being
 * reached from its own machine alone, and so is a browser there. A web page whose host name is made to resolve to 127.0.0.1 (DNS
 * rebinding) may call the server as its own origin: the browser then says that name. Any page may send a POST without a body
 * (CSRF), though it sees no answer: the browser then says its origin. `origins` are those whose pages may call.
 */
export function requireLoopbackNames(fastify: FastifyInstance, origins: readonly string[]): void {
  fastify.addHook("onRequest", async ({ headers }) => {
    if (!isLoopbackName(headers)) throw new Refusal("HOST_NOT_ALLOWED");
    if (!isFromLoopback(headers) && !origins.includes(headers.origin ?? "")) throw new Refusal("ORIGIN_NOT_ALLOWED");
  });
}

/** Whether a request calls the server by a name of its own machine, and is of no web page from elsewhere. */
export function isAmongLoopbackNames(headers: Headers): boolean {
  return isLoopbackName(headers) && isFromLoopback(headers);
}

function isLoopbackName(headers: Headers): boolean {
  const name = headers[":authority"] ?? headers.host;
  return typeof name === "string" && LOOPBACK_NAME.test(name);
}

/** RFC 6454 §7: `null`, of a page whose origin is a secret, is from elsewhere too. */
function isFromLoopback({ origin }: Headers): boolean {
  return origin === undefined || LOOPBACK_NAME.test(URL.parse(String(origin))?.host ?? "");
}

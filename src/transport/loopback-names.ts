import type { FastifyInstance } from "fastify";
import { Refusal } from "./rest/refusal.ts";

/** Names that mean the machine itself (RFC 6761 §6.3, RFC 1122 §3.2.1.3, RFC 4291 §2.5.3), with or without a port. */
const LOOPBACK_NAME = /^(?:(?:[a-z\d-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

/**
 * Refuses what calls the server by any other name. A server without authentication relies on being reached from its own machine
 * alone, and so is a browser there: a web page whose host name is made to resolve to 127.0.0.1 (DNS rebinding) may call the
 * server as its own origin. The browser then says that name.
 */
export function requireLoopbackName(fastify: FastifyInstance): void {
  fastify.addHook("onRequest", async ({ headers }) => {
    if (!isLoopbackName(headers)) throw new Refusal("HOST_NOT_ALLOWED");
  });
}

/** Whether a request calls the server by a name of its own machine. */
export function isLoopbackName(headers: Readonly<Record<string, string | string[] | undefined>>): boolean {
  const name = headers[":authority"] ?? headers.host;
  return typeof name === "string" && LOOPBACK_NAME.test(name);
}

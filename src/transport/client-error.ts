import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { FastifyBaseLogger } from "fastify";
import { refusalBody } from "./rest/error-response.ts";
import { Refusal, type RefusalReason } from "./rest/refusal.ts";

/** Errors of Node's HTTP/1.1 parser that have a status of their own, by their code; the others are malformed requests. */
const REASONS: ReadonlyMap<string | undefined, RefusalReason> = new Map([
  ["HPE_HEADER_OVERFLOW", "HEADER_TOO_LARGE"],
  ["ERR_HTTP_REQUEST_TIMEOUT", "REQUEST_TIMED_OUT"],
]);

/** For Fastify's option `clientErrorHandler`, which Node calls where the bytes of a connection do not become a request. */
export type ClientErrorHandler = (error: Error & { readonly code?: string }, socket: Socket) => void;

/** Answers in the form of all our errors and ends the connection. Of the error only its code is logged: it holds the bytes. */
export function clientErrorHandler(logger: FastifyBaseLogger): ClientErrorHandler {
  return ({ code }, socket) => {
    if (code === "ECONNRESET" || socket.destroyed) return;
    logger.debug({ code }, "a connection did not speak HTTP");
    if (socket.writable) socket.write(toHttp1(new Refusal(REASONS.get(code) ?? "HTTP_MALFORMED")));
    socket.destroy();
  };
}

/** A whole response (RFC 9112 §6), since there is no request that Node would let us answer. */
function toHttp1(refusal: Refusal): string {
  const { http } = refusal.row;
  const body = refusalBody(refusal);
  const head = [
    `HTTP/1.1 ${http} ${STATUS_CODES[http]}`,
    "Content-Type: application/json; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Cache-Control: no-store",
    "Connection: close",
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

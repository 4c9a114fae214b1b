import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { FastifyBaseLogger } from "fastify";
import { ListenerServer } from "../listener/server.ts";
import { errorResponse } from "./error-body.ts";
import { HttpError, type HttpErrorReason } from "./http-error.ts";

/** Errors of Node's HTTP/1.1 parser that have a status of their own, by their code; the others are malformed requests. */
const REASONS: ReadonlyMap<string | undefined, HttpErrorReason> = new Map([
  ["HPE_HEADER_OVERFLOW", "HEADER_TOO_LARGE"],
  ["ERR_HTTP_REQUEST_TIMEOUT", "REQUEST_TIMED_OUT"],
]);

/**
 * For Fastify's option of this name, which Node calls where the bytes of a connection do not become a request. Refuses in the form of all our errors and ends the connection, after the answers to the requests before: responses keep the order of
 * requests (RFC 9112 §9.3.2). Only the error's code is logged: the error contains the bytes.
 */
export function clientErrorHandler(logger: FastifyBaseLogger) {
  // Each further read of the connection fails again.
  const refused = new WeakSet<Socket>();
  return ({ code }: { readonly code?: string }, socket: Socket): void => {
    // Bytes behind a request with `Connection: close` are not looked at (RFC 9112 §9.6).
    if (code === "ECONNRESET" || code === "HPE_CLOSED_CONNECTION" || socket.destroyed || refused.has(socket)) return;
    refused.add(socket);
    logger.debug({ code }, "a connection did not speak HTTP");
    ListenerServer.afterAnswers(socket, () => refuseRest(socket, new HttpError(REASONS.get(code) ?? "HTTP_MALFORMED")));
  };
}

/** For Node's event `connect`. Without a listener Node drops the connection, and the answers in flight with it. */
export function refuseConnect({ socket }: IncomingMessage): void {
  // Node has taken its own listeners off.
  socket.on("error", () => {});
  const refusal = new HttpError("METHOD_NOT_ALLOWED", { Allow: "GET, HEAD, POST, PATCH, DELETE" });
  ListenerServer.afterAnswers(socket, () => refuseRest(socket, refusal));
}

function refuseRest(socket: Socket, refusal: HttpError): void {
  if (socket.writable) socket.write(toHttp1(refusal));
  socket.destroySoon();
}

/** A whole response (RFC 9112 §6), since there is no request that Node would let us answer. */
function toHttp1(refusal: HttpError): string {
  const { code, headers, body } = errorResponse(refusal);
  const fields = Object.entries({ ...headers, connection: "close" }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${code} ${STATUS_CODES[code]}\r\n${fields.join("")}\r\n${body}`;
}

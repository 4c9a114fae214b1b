import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { FastifyBaseLogger } from "fastify";
import { errorResponse } from "../wire/error-body.ts";
import { HttpError, type HttpErrorReason, methodUnknown } from "../wire/http-error.ts";
import { linger } from "./closing.ts";
import { ListenerServer } from "./server.ts";

/** Error codes of Node's HTTP/1.1 parser with a specific status; the others are malformed requests. */
const REASONS: ReadonlyMap<string | undefined, HttpErrorReason> = new Map([
  ["HPE_HEADER_OVERFLOW", "HEADER_TOO_LARGE"],
  ["ERR_HTTP_REQUEST_TIMEOUT", "REQUEST_TIMED_OUT"],
]);

/**
 * For Fastify's option of this name, which Node calls when the bytes of a connection are not a request. Responds with an error in our
 * form and closes the connection, after the responses to earlier requests: responses keep the order of requests (RFC 9112 §9.3.2). Logs
 * only the error code, because the error contains the bytes.
 */
export function clientErrorHandler(logger: FastifyBaseLogger) {
  // Each further read of the connection fails again.
  const rejected = new WeakSet<Socket>();
  return ({ code }: { readonly code?: string }, socket: Socket): void => {
    // Bytes after a request with `Connection: close` are ignored (RFC 9112 §9.6).
    if (code === "ECONNRESET" || code === "HPE_CLOSED_CONNECTION" || socket.destroyed || rejected.has(socket)) return;
    rejected.add(socket);
    logger.debug({ code }, "a connection did not use HTTP");
    ListenerServer.afterAnswers(socket, () => closeWith(socket, new HttpError(REASONS.get(code) ?? "HTTP_MALFORMED")));
  };
}

/** For Node's event `connect`. Without a listener Node drops the connection and the responses in flight. */
export function rejectConnect({ socket }: IncomingMessage): void {
  // Node has removed its listeners.
  socket.on("error", () => {});
  ListenerServer.afterAnswers(socket, () => closeWith(socket, methodUnknown()));
}

/** Sends an error, and reads the connection until the client closes it. */
function closeWith(socket: Socket, error: HttpError): void {
  const { writable, readableEnded } = socket;
  if (writable) socket.end(toHttp1(error));
  if (!writable || readableEnded) socket.destroySoon();
  else linger(socket);
}

/** Formats a complete response (RFC 9112 §6), because Node provides no response object without a request. */
function toHttp1(error: HttpError): string {
  const { code, headers, body } = errorResponse(error);
  const fields = Object.entries({ ...headers, connection: "close" }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${code} ${STATUS_CODES[code]}\r\n${fields.join("")}\r\n${body}`;
}

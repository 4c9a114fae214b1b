import { Code, ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { HttpError, type HttpErrorReason } from "./http-error.ts";
import type { Protocol } from "./protocol.ts";

/** A content type that expects a gRPC status, with any message format: an RPC may not support it, such as the base64 of `-web-text`. */
const GRPC_TYPE = /^application\/grpc(-web(?:-text)?)?(?:\+[\w.-]+)?(?=;|$)/i;

/** Returns the protocol of a request that expects a gRPC status, and the type of its responses; undefined for other requests. */
export function grpcTypeOf(contentType = ""): { readonly protocol: Protocol; readonly type: string } | undefined {
  const [type, web] = GRPC_TYPE.exec(contentType) ?? [];
  return type === undefined ? undefined : { protocol: web === undefined ? "grpc" : "grpc_web", type };
}

/**
 * In gRPC, what is no RPC is an unknown method, and so is an RPC in an unknown message format (doc/statuscodes.md). Without details, as
 * the conformance suite requires.
 */
const UNIMPLEMENTED: ReadonlyMap<HttpErrorReason, string> = new Map([
  ["PATH_NOT_FOUND", "the server does not implement this method"],
  ["METHOD_NOT_ALLOWED", "gRPC calls must be POST requests"],
  [
    "MEDIA_TYPE_NOT_SUPPORTED",
    "the content type must be application/grpc or application/grpc-web, with +proto or +json",
  ],
]);

/** Returns what gRPC callers receive for an error of the transport. */
export function asGrpcError(error: ConnectError): ConnectError {
  const message = error instanceof HttpError ? UNIMPLEMENTED.get(error.reason) : undefined;
  return message === undefined ? error : new ConnectError(message, Code.Unimplemented, error.metadata);
}

/** Returns the trailers with the status of an error. */
export function grpcStatus(error: ConnectError, trailers = new Headers()): Headers {
  setTrailerStatus(trailers, error);
  unescapeMessage(trailers);
  return trailers;
}

/** Escapes from %20 to %7E except %25. */
const PRINTABLE = /%(2[0-46-9A-F]|[3-6][0-9A-F]|7[0-9A-E])/g;

/**
 * Connect percent-encodes `grpc-message` like a URL component. gRPC encodes only `%` and what is not printable ASCII (PROTOCOL-HTTP2,
 * "Percent-Byte-Unencoded"), and some clients, such as grpc-js, decode no more than that and would show `name%3A`.
 */
export function unescapeMessage(trailer: Headers): void {
  const message = trailer.get("grpc-message");
  if (message === null) return;
  const plain = message.replace(PRINTABLE, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  trailer.set("grpc-message", plain);
}

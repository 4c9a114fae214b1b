import { Http2ServerResponse, type OutgoingHttpHeaders } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { FastifyReply, FastifyRequest } from "fastify";
import { codeName, type Protocol } from "../call-metrics.ts";
import { HttpError } from "../errors/http-error.ts";

const GRPC_TYPE = /^application\/grpc(?<web>-web)?(?:[+;]|$)/i;

/** Returns the protocol of a request that expects a gRPC status (gRPC or gRPC-Web), whether or not an RPC serves it. */
export function grpcProtocolOf({ headers }: FastifyRequest): Protocol | undefined {
  const groups = GRPC_TYPE.exec(headers["content-type"] ?? "")?.groups;
  if (groups === undefined) return undefined;
  return groups.web === undefined ? "grpc" : "grpc_web";
}

/** Sends a transport error as a gRPC response without a body ("Trailers-Only" in PROTOCOL-HTTP2). */
export function sendGrpcError(reply: FastifyReply, cause: ConnectError, protocol: Protocol): void {
  const { facts, headers } = reply.request;
  // In gRPC a path without an RPC is an unknown method, which has a code of its own (doc/statuscodes.md).
  const isUnknown = cause instanceof HttpError && cause.reason === "PATH_NOT_FOUND";
  const error = isUnknown ? new ConnectError("the server does not implement this method", Code.Unimplemented) : cause;
  if (facts !== undefined) Object.assign(facts, { protocol, code: codeName(error.code) });
  reply.headers(Object.fromEntries(grpcStatus(error))).header("content-type", headers["content-type"]);
  if (!(reply.raw instanceof Http2ServerResponse)) return void reply.send();
  // Fastify would write the headers and then an empty DATA frame, and clients would miss the status. Nor would Node end the stream while
  // the client is still sending.
  const fields = { ":status": 200, ...(reply.getHeaders() as OutgoingHttpHeaders) };
  const { stream } = reply.raw;
  if (!stream.destroyed && !stream.closed) stream.respond(fields, { endStream: true });
  reply.hijack();
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

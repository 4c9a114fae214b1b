import { Http2ServerResponse, type OutgoingHttpHeaders } from "node:http2";
import { ConnectError } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { toConnectError } from "../../api/errors.ts";
import { KeyholdError } from "../../domain/errors.ts";
import { errorResponse } from "./error-body.ts";
import { asGrpcError, grpcStatus, grpcTypeOf } from "./grpc.ts";
import { HttpError, type HttpErrorReason } from "./http-error.ts";
import { codeName } from "./protocol.ts";

/** Errors of Fastify that a request may cause, by code. */
const FASTIFY_ERRORS: ReadonlyMap<unknown, HttpErrorReason> = new Map([
  ["FST_ERR_BAD_URL", "URL_MALFORMED"],
  ["FST_ERR_MAX_PARAM_LENGTH", "URL_TOO_LONG"],
  ["FST_ERR_CTP_INVALID_MEDIA_TYPE", "MEDIA_TYPE_NOT_SUPPORTED"],
]);

/** Handles every error of the instance and every unknown path. Bodies are read by the routes. */
export function answerErrors(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser("*", (_request, _payload, done) => done(null));
  fastify.setErrorHandler(handleError);
  fastify.setNotFoundHandler((request, reply) => handleError(new HttpError("PATH_NOT_FOUND"), request, reply));
}

/** Responds with an error. One that is unexpected is logged, and becomes INTERNAL. */
export function handleError(cause: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { code, headers, trailers, body } = renderError(toKnownError(cause, request), request);
  // The handler may have set it before it failed.
  reply
    .removeHeader("etag")
    .code(code)
    .headers({ ...headers, ...trailers });
  if (body !== undefined || !(reply.raw instanceof Http2ServerResponse)) return void reply.send(body);
  // Fastify would write the headers and then an empty DATA frame, and gRPC clients would miss the status. Nor would Node end the stream
  // while the client is still sending.
  const fields = { ":status": code, ...(reply.getHeaders() as OutgoingHttpHeaders) };
  const { stream } = reply.raw;
  if (!stream.destroyed && !stream.closed) stream.respond(fields, { endStream: true });
  reply.hijack();
}

/**
 * Returns the response to a request that fails outside of an RPC: a gRPC status for gRPC and gRPC-Web, otherwise a REST error. The status of
 * gRPC may also be sent as headers ("Trailers-Only" in PROTOCOL-HTTP2). In gRPC-Web it always is.
 */
export function renderError(error: ConnectError, { headers, raw, logFields }: FastifyRequest) {
  // RFC 9112 requires the status 400 for malformed requests, whatever the protocol above.
  const isMalformed = error instanceof HttpError && error.reason === "HTTP_MALFORMED" && raw.httpVersionMajor === 1;
  const grpc = isMalformed ? undefined : grpcTypeOf(headers["content-type"]);
  if (grpc === undefined) {
    const { status, ...response } = errorResponse(error);
    // Fastify rejects a malformed URL before the hook that sets `logFields`.
    if (logFields !== undefined) logFields.code = status;
    return { ...response, trailers: undefined };
  }
  const { protocol, type } = grpc;
  const grpcError = asGrpcError(error);
  if (logFields !== undefined) Object.assign(logFields, { protocol, code: codeName(grpcError.code) });
  const status = Object.fromEntries(grpcStatus(grpcError));
  if (protocol === "grpc") return { code: 200, headers: { "content-type": type }, trailers: status, body: undefined };
  return { code: 200, headers: { "content-type": type, ...status }, trailers: undefined, body: undefined };
}

function toKnownError(cause: unknown, { id, log }: FastifyRequest): ConnectError {
  const reason = FASTIFY_ERRORS.get(cause instanceof Error && "code" in cause ? cause.code : undefined);
  if (reason !== undefined) return new HttpError(reason);
  if (!(cause instanceof ConnectError || cause instanceof KeyholdError))
    log.error({ reqId: id, err: cause }, "a request failed");
  return toConnectError(cause);
}

import { ConnectError } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { toConnectError } from "../../api/errors.ts";
import { KeyholdError } from "../../domain/errors.ts";
import { grpcProtocolOf, sendGrpcError } from "../connect/grpc-error.ts";
import { errorResponse } from "./error-body.ts";
import { HttpError, type HttpErrorReason } from "./http-error.ts";

/** Errors of Fastify that a request may cause, by code. */
const FASTIFY_ERRORS: ReadonlyMap<unknown, HttpErrorReason> = new Map([
  ["FST_ERR_BAD_URL", "URL_MALFORMED"],
  ["FST_ERR_MAX_PARAM_LENGTH", "URL_TOO_LONG"],
  ["FST_ERR_NOT_FOUND", "PATH_NOT_FOUND"],
  ["FST_ERR_CTP_INVALID_MEDIA_TYPE", "MEDIA_TYPE_NOT_SUPPORTED"],
  ["FST_ERR_ROUTE_MISSING_CONTENT_TYPE", "MEDIA_TYPE_NOT_SUPPORTED"],
  ["FST_ERR_CTP_BODY_TOO_LARGE", "BODY_TOO_LARGE"],
  ["FST_ERR_HANDLER_TIMEOUT", "TIMED_OUT"],
]);

/** Handles every error of the instance and every unknown path. Bodies are read by the routes. */
export function answerErrors(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser("*", (_request, _payload, done) => done(null));
  fastify.setErrorHandler(handleError);
  fastify.setNotFoundHandler((request, reply) => handleError(new HttpError("PATH_NOT_FOUND"), request, reply));
}

/** Responds with a gRPC status to gRPC and gRPC-Web, otherwise with a REST error. An unexpected error is logged, and becomes INTERNAL. */
export function handleError(cause: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const error = toKnownError(cause, request);
  // RFC 9112 requires the status 400 for malformed requests, whatever the protocol above.
  const isMalformed = error instanceof HttpError && error.reason === "HTTP_MALFORMED";
  const protocol = isMalformed ? undefined : grpcProtocolOf(request);
  if (protocol !== undefined) {
    sendGrpcError(reply, error, protocol);
    return;
  }
  const { code, status, headers, body } = errorResponse(error);
  // Fastify rejects a malformed URL before the hook that sets `facts`.
  if (request.facts !== undefined) request.facts.code = status;
  // The handler may have set it before it failed.
  reply.removeHeader("etag").code(code).headers(headers).send(body);
}

function toKnownError(cause: unknown, { id, log }: FastifyRequest): ConnectError {
  const reason = FASTIFY_ERRORS.get(cause instanceof Error && "code" in cause ? cause.code : undefined);
  if (reason !== undefined) return new HttpError(reason);
  if (!(cause instanceof ConnectError || cause instanceof KeyholdError))
    log.error({ reqId: id, err: cause }, "a request failed");
  return toConnectError(cause);
}

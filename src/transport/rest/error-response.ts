import { createRegistry, type Registry } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import { file_google_rpc_error_details } from "../../../gen/google/rpc/error_details_pb.js";
import { toConnectError } from "../../api/errors.ts";
import { KeyholdError } from "../../errors.ts";
import { toErrorBody } from "./error-body.ts";
import { Refusal, type RefusalReason } from "./refusal.ts";

/** Errors of Fastify itself that a request may cause, by their code. */
const FASTIFY_ERRORS: ReadonlyMap<unknown, RefusalReason> = new Map([
  ["FST_ERR_BAD_URL", "URL_MALFORMED"],
  ["FST_ERR_MAX_PARAM_LENGTH", "URL_TOO_LONG"],
  ["FST_ERR_NOT_FOUND", "PATH_NOT_FOUND"],
  ["FST_ERR_CTP_INVALID_MEDIA_TYPE", "MEDIA_TYPE_NOT_SUPPORTED"],
  ["FST_ERR_ROUTE_MISSING_CONTENT_TYPE", "MEDIA_TYPE_NOT_SUPPORTED"],
  ["FST_ERR_CTP_BODY_TOO_LARGE", "BODY_TOO_LARGE"],
  ["FST_ERR_HANDLER_TIMEOUT", "TIMED_OUT"],
]);

/** Those of a message's framing, which are the response's own. */
const FRAMING = new Set(["connection", "content-length", "content-type", "keep-alive", "transfer-encoding", "upgrade"]);

const errorDetails = createRegistry(file_google_rpc_error_details);

/**
 * Sends an error in the form of AIP-193 (contract §6), with the HTTP status of its code. The `metadata` of a ConnectError become
 * response headers. `registry` knows the types of the details.
 */
export function writeError(
  reply: FastifyReply,
  error: ConnectError | Refusal,
  registry: Registry = errorDetails,
): FastifyReply {
  const body = toErrorBody(error, registry);
  // A URL that Fastify refuses by itself is refused before the hook that gives a request its facts.
  if (reply.request.facts !== undefined) reply.request.facts.code = body.error.status;
  // What a handler had set for the answer that it did not give.
  reply.removeHeader("etag").header("cache-control", "no-store");
  for (const [name, value] of errorHeaders(error)) reply.header(name, value);
  return reply.code(body.error.code).type("application/json").send(JSON.stringify(body));
}

/** The response headers that an error brings. */
export function errorHeaders(error: ConnectError | Refusal): readonly (readonly [name: string, value: string])[] {
  const headers = error instanceof Refusal ? Object.entries(error.headers) : [...error.metadata];
  return headers.filter(([name]) => !FRAMING.has(name));
}

/** The body alone, for an answer that Fastify does not send. */
export function refusalBody(refusal: Refusal): string {
  return JSON.stringify(toErrorBody(refusal, errorDetails));
}

/**
 * For Fastify's `setErrorHandler` and its option `frameworkErrors`. An error that is none of those meant for a caller becomes
 * INTERNAL, which says nothing of its cause, and goes to the log.
 */
export function errorHandler(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  writeError(reply, toRestError(error, request));
}

/** The same with the types of more details. */
export function errorHandlerWith(registry: Registry): typeof errorHandler {
  return (error, request, reply) => void writeError(reply, toRestError(error, request), registry);
}

/** For Fastify's `setNotFoundHandler`. */
export function notFoundHandler(_request: FastifyRequest, reply: FastifyReply): void {
  writeError(reply, new Refusal("PATH_NOT_FOUND"));
}

function toRestError(error: unknown, request: FastifyRequest): ConnectError | Refusal {
  if (error instanceof Refusal || error instanceof ConnectError) return error;
  const reason = FASTIFY_ERRORS.get(codeOf(error));
  if (reason !== undefined) return new Refusal(reason);
  if (!(error instanceof KeyholdError)) request.log.error({ err: error }, "a request failed");
  return toConnectError(error);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

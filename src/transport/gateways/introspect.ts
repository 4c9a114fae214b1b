import { Code, ConnectError } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { FormParameters, Introspect } from "../../api/introspection.ts";
import type { Guard } from "../../auth/guard.ts";
import { invalidArgument } from "../../domain/errors.ts";
import { decodeFormText, splitForm } from "../../lib/form-encoding.ts";
import { redactName } from "../../lib/redact-name.ts";
import { decodeUtf8 } from "../../lib/utf8.ts";
import type { Tracing } from "../../observability/tracing.ts";
import { createPipeline } from "../pipeline/call-pipeline.ts";
import type { ConcurrencyLimiter } from "../pipeline/concurrency-limiter.ts";
import { errorResponse, jsonFields } from "../wire/error-body.ts";
import type { RestCall } from "../wire/fastify-call.ts";
import { mediaTypePattern } from "../wire/headers.ts";
import { HttpError, methodNotAllowed } from "../wire/http-error.ts";
import { type Json, restHandler, sendJson } from "../wire/json-response.ts";
import { NO_BODY, type ReadBody } from "../wire/request-body.ts";

export const INTROSPECTION = "keyhold.v2alpha1.Introspection/Introspect";

const PATH = "/v2alpha1/introspect";

const POLICY = "keyhold:verify";

/** Twice the longest credential. */
const MAX_REQUEST_BYTES = 2 ** 14;

export type IntrospectionPipeline = ReturnType<typeof createIntrospection>;

/** Decorates the handler of token introspection (RFC 7662) with authorization, load shedding and the error table. */
export function createIntrospection(
  introspect: Introspect,
  guard: Guard,
  limiter: ConcurrencyLimiter,
  tracing: Tracing | undefined,
) {
  const endpoint = {
    name: INTROSPECTION,
    method: { name: "Introspect" },
    policy: POLICY,
    acceptsBasic: true,
    mayAnswerFromCache: true,
    handler: (body: Uint8Array) => introspect(readForm(body)),
  } as const;
  return createPipeline(endpoint, guard, limiter, tracing);
}

export function registerIntrospection(
  fastify: FastifyInstance,
  pipeline: IntrospectionPipeline,
  readBody: ReadBody,
): void {
  const answer = async (call: RestCall, { method, raw }: FastifyRequest): Promise<Json> => {
    if (method !== "POST") throw methodNotAllowed(["POST"]);
    const admitted = await pipeline.admit(call);
    requireForm(raw.headers);
    const body = await readBody(raw, MAX_REQUEST_BYTES);
    // The caller may have been revoked while the body was in transit.
    const principal = body === NO_BODY ? admitted : await pipeline.admit(call);
    return JSON.stringify(await pipeline.invoke(body, principal, call));
  };
  const serve = restHandler(answer, sendJson);
  const handler = (request: FastifyRequest, reply: FastifyReply) =>
    serve(request, reply).catch((error) => {
      if (!(error instanceof ConnectError)) throw error;
      const { code, status, headers, body } = oauthError(error, POLICY);
      if (request.logFields !== undefined) request.logFields.code = status;
      return reply.code(code).headers(headers).send(body);
    });
  // In every method: the error of another than POST has the form of OAuth too. A preflight request is handled by CORS before.
  fastify.route({ method: fastify.supportedMethods, url: PATH, exposeHeadRoute: false, handler });
}

const FORM_MEDIA_TYPE = mediaTypePattern("application/x-www-form-urlencoded");

const FORM_REQUIRED = "the request body must be application/x-www-form-urlencoded in UTF-8";

function requireForm({ "content-type": type, "content-encoding": encoding = "identity" }: FastifyRequest["headers"]) {
  if (type === undefined || !FORM_MEDIA_TYPE.test(type))
    throw new HttpError("MEDIA_TYPE_NOT_SUPPORTED", {}, FORM_REQUIRED);
  if (encoding.toLowerCase() !== "identity") throw new HttpError("CONTENT_ENCODING_NOT_SUPPORTED");
}

/**
 * Reads the parameters of a form. One without a value counts as absent, and none may occur twice (RFC 6749 §3.1). Throws
 * `INVALID_ARGUMENT`.
 */
function readForm(body: Uint8Array): FormParameters {
  const text = decodeUtf8(body);
  if (text === undefined) throw invalidArgument("body", "is not in UTF-8");
  const parameters = new Map<string, string>();
  for (const pair of splitForm(text)) {
    const [name, value] = pair.map(decodeFormText);
    if (name === undefined || value === undefined) throw invalidArgument("body", "has a malformed percent-encoding");
    if (parameters.has(name)) throw invalidArgument(redactName(name), "is set twice", "DUPLICATE_FIELD");
    parameters.set(name, value);
  }
  for (const [name, value] of parameters) if (value === "") parameters.delete(name);
  return parameters;
}

/** Error codes of OAuth by HTTP status (RFC 6749 §4.1.2.1 and §5.2, RFC 6750 §3.1). */
const ERRORS: Readonly<Record<number, string>> = {
  401: "invalid_client",
  403: "insufficient_scope",
  429: "temporarily_unavailable",
  503: "temporarily_unavailable",
};

/**
 * Returns the response for an error in the form of OAuth (RFC 6749 §5.2), with the status and headers that REST has. `scope` is the one
 * that the caller needs.
 */
export function oauthError(error: ConnectError, scope: string) {
  const { code, status, headers } = errorResponse(error);
  const name = ERRORS[code] ?? (code < 500 ? "invalid_request" : "server_error");
  const body = JSON.stringify({ error: name, error_description: descriptionOf(error.rawMessage) });
  const challenges = challengesFor(error.code, scope);
  const fields: Record<string, string | string[]> = { ...headers, ...jsonFields(body) };
  if (challenges.length > 0) fields["www-authenticate"] = challenges;
  return { code, status, headers: fields, body };
}

/** RFC 6749 §5.2 allows neither `"` nor `\`, and ASCII only. */
function descriptionOf(message: string): string {
  return message.replaceAll('"', "'").replace(/[^\x20-\x5b\x5d-\x7e]/g, "?");
}

/** Two fields, because not every client separates challenges in one (RFC 9110 §11.6.1). */
function challengesFor(code: Code, scope: string): string[] {
  if (code === Code.Unauthenticated) return ['Basic realm="keyhold", charset="UTF-8"', 'Bearer realm="keyhold"'];
  if (code === Code.PermissionDenied) return [`Bearer realm="keyhold", error="insufficient_scope", scope="${scope}"`];
  return [];
}

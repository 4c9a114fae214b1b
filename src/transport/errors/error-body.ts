import { create, createRegistry, fromBinary, type JsonValue, type Registry, toJson } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { FastifyReply } from "fastify";
import { file_google_rpc_error_details } from "../../../gen/google/rpc/error_details_pb.js";
import { JSON_OPTIONS } from "../json/reader.ts";
import { HTTP_ERRORS, HttpError } from "./http-error.ts";
import { STATUSES } from "./status.ts";

/** The details that errors have everywhere. */
const errorDetails = createRegistry(file_google_rpc_error_details);

/**
 * Returns the body of an error (AIP-193): `code` is the HTTP status, `status` the name in google.rpc.Code. A detail whose type `registry`
 * does not know is left out: an error must not fail.
 */
export function toErrorBody(error: ConnectError, registry: Registry = errorDetails) {
  const { http, name: status } = STATUSES[error.code];
  const code = error instanceof HttpError ? HTTP_ERRORS[error.reason].http : http;
  return { error: { code, message: error.rawMessage, status, details: detailsToJson(error.details, registry) } };
}

/** Those of a message's framing, which are the response's own. */
const FRAMING = new Set(["connection", "content-length", "content-type", "keep-alive", "transfer-encoding", "upgrade"]);

/** The response headers that an error brings. */
export function errorHeaders({ metadata }: ConnectError): readonly (readonly [name: string, value: string])[] {
  return [...metadata].filter(([name]) => !FRAMING.has(name));
}

/**
 * Sends an error in the form of AIP-193 (contract §6), with the HTTP status of its code. The `metadata` of a ConnectError become
 * response headers. `registry` knows the types of the details.
 */
export function writeError(reply: FastifyReply, error: ConnectError, registry: Registry): void {
  const body = toErrorBody(error, registry);
  // A URL that Fastify refuses by itself is refused before the hook that gives a request its facts.
  if (reply.request.facts !== undefined) reply.request.facts.code = body.error.status;
  // What a handler had set for the answer that it did not give.
  reply.removeHeader("etag").header("cache-control", "no-store");
  for (const [name, value] of errorHeaders(error)) reply.header(name, value);
  reply.code(body.error.code).type("application/json").send(JSON.stringify(body));
}

/** A detail is a message on its way out, or bytes where it came in from elsewhere. */
function detailsToJson(details: ConnectError["details"], registry: Registry): readonly JsonValue[] {
  return details.flatMap((detail) => {
    try {
      const desc = "desc" in detail ? detail.desc : registry.getMessage(detail.type);
      if (desc === undefined) return [];
      const message = "desc" in detail ? create(desc, detail.value) : fromBinary(desc, detail.value);
      const json = toJson(desc, message, { ...JSON_OPTIONS, registry });
      // Type first, as people read it.
      return [{ "@type": `type.googleapis.com/${desc.typeName}`, ...Object(json) }];
    } catch {
      return [];
    }
  });
}

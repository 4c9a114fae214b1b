import {
  type DescField,
  type DescMessage,
  type JsonWriteOptions,
  type Message,
  type Registry,
  toJson,
} from "@bufbuild/protobuf";
import type { FastifyReply, FastifyRequest } from "fastify";

export type EncodeResponse = (response: Message) => string;

/** Writes the field that a `response_body` names, as it stands in the JSON of the whole response; `null` where it has no value. */
export function responseEncoder(desc: DescMessage, responseBody: DescField, registry: Registry): EncodeResponse {
  const options: Partial<JsonWriteOptions> = { registry, useProtoFieldName: true, alwaysEmitImplicit: true };
  return (response) => {
    const json = toJson(desc, response, options);
    return JSON.stringify(Object(json)[responseBody.name] ?? null);
  };
}

/**
 * Sends the JSON of a response. `Cache-Control` is `no-store` unless the RPC has set another. Where the RPC has set an `ETag` that
 * the caller has already, the answer is 304 without a body (RFC 9110 §13.1.2).
 */
export function sendJson(request: FastifyRequest, reply: FastifyReply, json: string): FastifyReply {
  if (!reply.hasHeader("cache-control")) reply.header("cache-control", "no-store");
  const { method, headers } = request;
  if (isKnown(method, reply.getHeader("etag"), headers["if-none-match"])) return reply.code(304).send();
  return reply.type("application/json").send(json);
}

/** Whether the caller has the answer of this `etag` already, by its If-None-Match. */
export function isKnown(method: string, etag: unknown, known: string | undefined): boolean {
  if (typeof etag !== "string" || known === undefined || (method !== "GET" && method !== "HEAD")) return false;
  return known.split(",").some((tag) => tag.trim() === "*" || withoutWeakness(tag.trim()) === withoutWeakness(etag));
}

/** If-None-Match compares weakly (RFC 9110 §8.8.3.2). */
function withoutWeakness(etag: string): string {
  return etag.startsWith("W/") ? etag.slice(2) : etag;
}

import type { Registry } from "@bufbuild/protobuf";
import { toConnectError } from "../../api/errors.ts";
import { compileJsonReader } from "../json/reader.ts";
import { toErrorBody } from "../rest/error-body.ts";
import { errorHeaders } from "../rest/error-response.ts";
import { parseJson } from "../rest/json-text.ts";
import { Refusal } from "../rest/refusal.ts";
import type { Route as RestRoute } from "../rest/routes.ts";
import { isFieldMask } from "../rest/update-mask.ts";
import type { LaneCall } from "./call.ts";
import type { Answer } from "./exchange.ts";
import { fromHeaders, toHeaders } from "./fields.ts";
import type { Route } from "./route.ts";

const JSON_TYPE = "application/json; charset=utf-8";

/** A REST path that holds no part of the request. */
export function restRoute(route: RestRoute, registry: Registry): Route {
  const { rpc, encode } = route;
  return {
    rpc,
    maxBodyBytes: rpc.maxRequestBytes,
    timeout: () => undefined,
    decode: decoderOf(route, registry),
    tooLarge: () => new Refusal("BODY_TOO_LARGE"),
    answer: (call, response) => answer(call, encode(response)),
    refuse: (call, error) => refuse(call, error, registry),
  };
}

/** Nothing but the body makes the request, and an empty one is that of no fields. */
function decoderOf({ rpc, body, decode }: RestRoute, registry: Registry): Route["decode"] {
  const { input } = rpc.method;
  // A field mask in JSON is read in more forms than those of Protobuf.
  const isWhole = body.kind === "whole" && !input.fields.some(isFieldMask);
  const readWhole = compileJsonReader(input, { registry });
  const read = (bytes: Uint8Array) => decode({ segments: [], query: "", body: parseJson(bytes) });
  const readBody = isWhole ? readWhole : read;
  return (bytes) => (bytes.length === 0 ? decode({ segments: [], query: "", body: undefined }) : readBody(bytes));
}

function answer(call: LaneCall, body: string): Answer {
  const headers = ["content-type", JSON_TYPE, ...call.responseHeaders()];
  if (call.headerSet("cache-control") === undefined) headers.push("cache-control", "no-store");
  headers.push("content-length", String(Buffer.byteLength(body)));
  return { status: 200, headers, body };
}

function refuse(call: LaneCall, cause: unknown, registry: Registry): Answer {
  const error = cause instanceof Refusal ? cause : toConnectError(cause);
  const content = toErrorBody(error, registry);
  const body = JSON.stringify(content);
  const headers = toHeaders(call.responseHeaders());
  // What a handler had set for the answer that it did not give.
  headers.delete("etag");
  headers.set("cache-control", "no-store");
  for (const [name, value] of errorHeaders(error)) headers.set(name, value);
  const length = String(Buffer.byteLength(body));
  return {
    status: content.error.code,
    headers: ["content-type", JSON_TYPE, ...fromHeaders(headers), "content-length", length],
    body,
  };
}

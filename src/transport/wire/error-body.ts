import { create, createRegistry, fromBinary, type JsonValue, toJson } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { file_google_rpc_error_details } from "../../../gen/google/rpc/error_details_pb.js";
import { HTTP_ERRORS, HttpError, STATUSES } from "./http-error.ts";
import { JSON_OPTIONS } from "./json/reader.ts";

/** The detail types of all errors. */
const errorDetails = createRegistry(file_google_rpc_error_details);

/** Returns the body of an error (AIP-193): `code` is the HTTP status, `status` the name in google.rpc.Code. */
export function toErrorBody(error: ConnectError) {
  const { http, name: status } = STATUSES[error.code];
  const code = error instanceof HttpError ? HTTP_ERRORS[error.reason].http : http;
  return { error: { code, message: error.rawMessage, status, details: error.details.flatMap(detailToJson) } };
}

/** Header fields that belong to the framing of the response. */
const FRAMING = new Set(["connection", "content-length", "content-type", "keep-alive", "transfer-encoding", "upgrade"]);

/** Returns the response for an error in protocols without their own error format. Its `metadata` become response headers. */
export function errorResponse(error: ConnectError) {
  const content = toErrorBody(error);
  const body = JSON.stringify(content);
  const headers: Readonly<Record<string, string>> = {
    ...jsonFields(body),
    ...Object.fromEntries([...error.metadata].filter(([name]) => !FRAMING.has(name))),
  };
  return { code: content.error.code, status: content.error.status, headers, body };
}

/** Returns the header fields of a JSON response that must not be cached. */
export function jsonFields(body: string | Uint8Array): Readonly<Record<string, string>> {
  return {
    "cache-control": "no-store",
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(body)),
  };
}

/** A detail is a message, or bytes if it was received. One of an unknown type is omitted: formatting an error must not fail. */
function detailToJson(detail: ConnectError["details"][number]): JsonValue[] {
  try {
    const desc = "desc" in detail ? detail.desc : errorDetails.getMessage(detail.type);
    if (desc === undefined) return [];
    const message = "desc" in detail ? create(desc, detail.value) : fromBinary(desc, detail.value);
    const json = toJson(desc, message, JSON_OPTIONS);
    // The type comes first.
    return [{ "@type": `type.googleapis.com/${desc.typeName}`, ...Object(json) }];
  } catch {
    return [];
  }
}

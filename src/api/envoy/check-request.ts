import type { Address } from "../../../gen/envoy/config/core/v3/address_pb.js";
import type { AttributeContext_HttpRequest } from "../../../gen/envoy/service/auth/v3/attribute_context_pb.js";
import type { CheckRequest } from "../../../gen/envoy/service/auth/v3/external_auth_pb.js";

/** What a `CheckRequest` says about the request of a client: the parts that a decision depends on. */
export interface CheckedRequest {
  /** False for a connection, which the network filter of Envoy asks about. */
  readonly isHttp: boolean;
  /** The IP address of Envoy's peer; empty if it has none, such as a Unix socket. */
  readonly source: string;
  /** Path and query. */
  readonly path: string;
  /** The names in lower case and the values of all fields, in turn. */
  readonly fields: readonly string[];
  /** The names and values of the settings of the route, in turn. */
  readonly extensions: readonly string[];
}

/** Reads a decoded message. */
export function readCheckRequest({ attributes }: CheckRequest): CheckedRequest {
  const http = attributes?.request?.http;
  return {
    isHttp: http !== undefined,
    source: ipOf(attributes?.source?.address),
    path: http?.path ?? "",
    fields: http === undefined ? [] : fieldsOf(http),
    extensions: Object.entries(attributes?.contextExtensions ?? {}).flat(),
  };
}

function ipOf(address: Address | undefined): string {
  return address?.address.case === "socketAddress" ? address.address.value.address : "";
}

/** The list, which Envoy sends with `encode_raw_headers`, has the fields as they were received; in the map, those of one name are joined. */
function fieldsOf({ headers, headerMap }: AttributeContext_HttpRequest): string[] {
  if (headerMap === undefined) return Object.entries(headers).flatMap(([name, value]) => [name.toLowerCase(), value]);
  return headerMap.headers.flatMap(({ key, value, rawValue }) => [
    key.toLowerCase(),
    rawValue.length > 0 ? textOf(rawValue) : value,
  ]);
}

/** As Node decodes header fields: a byte is a character. */
function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}

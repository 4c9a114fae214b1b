import { fromBinary, type JsonObject } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport, type GrpcTransportOptions } from "@connectrpc/connect-node";
import {
  HeaderValueOption_HeaderAppendAction as AppendAction,
  Authorization,
  type CheckRequest,
  CheckRequestSchema,
  type CheckResponse,
  type HeaderValueOption,
} from "../../gen/envoy/service/auth/v3/ext_authz_pb.js";
import { type EnvoyCheck, encodeCheck } from "./envoy-protos.ts";
import type { Fields } from "./forward-auth.ts";
import type { Json } from "./rest.ts";

/** The request of a client, as Envoy describes it. */
export interface Described {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Fields;
  /** As Envoy sends them with `encode_raw_headers`; by default true. Otherwise those of one name are joined. */
  readonly isRaw?: boolean;
  /** The address of Envoy's peer. */
  readonly source?: string;
  readonly extensions?: Record<string, string>;
}

/** An answer to Envoy. */
export interface CheckDecision {
  /** Of google.rpc.Code; Envoy passes the request with 0 only. */
  readonly code: number;
  /** 200, or the status for the client. */
  readonly status: number;
  /** Headers for the application, or for the client. */
  readonly headers: Readonly<Record<string, string>>;
  readonly removed: readonly string[];
  /** Headers for the client, of a request that passes; undefined: there are none. */
  readonly added?: Readonly<Record<string, string>>;
  readonly metadata: JsonObject | undefined;
  readonly text: string;
  /** `metadata.error_code` or the reason of the error; undefined for 200. */
  readonly reason: string | undefined;
}

/** Returns the message that Envoy sends for a request. */
export function describeRequest(described: Described = {}): EnvoyCheck {
  const { method = "GET", path = "/", headers = [], isRaw = true, source = "203.0.113.7", extensions = {} } = described;
  const all = [[":method", method], [":path", path], ...headers].map(
    ([name = "", value = ""]) => [name.toLowerCase(), value] as const,
  );
  const raw = all.map(([key, value]) => ({ key, rawValue: Buffer.from(value, "latin1") }));
  const joined = Map.groupBy(all, ([name]) => name);
  const text = [...joined].map(([name, fields]) => [name, fields.map(([, value]) => value).join(",")] as const);
  const http = isRaw ? { headerMap: { headers: raw } } : { headers: Object.fromEntries(text) };
  return {
    attributes: {
      source: { address: { socketAddress: { address: source, portValue: 4711 } } },
      request: {
        http: { id: "1", method, path, host: "app.example", scheme: "https", protocol: "HTTP/1.1", size: -1, ...http },
      },
      contextExtensions: extensions,
    },
  };
}

/** Returns the message with all fields of Envoy's, also those that Keyhold's proto does not have. */
export function messageOf(request: EnvoyCheck): CheckRequest {
  return fromBinary(CheckRequestSchema, encodeCheck(request));
}

/** Asks a server as Envoy does. `metadata` are of the call, not of its client. */
export async function check(
  { url }: { readonly url: string },
  request: EnvoyCheck,
  metadata: Readonly<Record<string, string>> = {},
  options: { readonly nodeOptions?: GrpcTransportOptions["nodeOptions"] & { readonly localAddress?: string } } = {},
): Promise<CheckDecision> {
  const client = createClient(Authorization, createGrpcTransport({ baseUrl: url, ...options }));
  return decisionOf(await client.check(messageOf(request), { headers: metadata }));
}

/** Throws unless the answer has the form that Envoy needs. */
export function decisionOf({ status, httpResponse, dynamicMetadata: metadata }: CheckResponse): CheckDecision {
  const code = status?.code ?? -1;
  if (httpResponse.case === undefined) throw new Error("neither allowed nor denied");
  if ((code === 0) !== (httpResponse.case === "okResponse")) throw new Error(`code ${code} with ${httpResponse.case}`);
  const headers = headersOf(httpResponse.value.headers);
  if (httpResponse.case === "okResponse") {
    const { headersToRemove: removed } = httpResponse.value;
    const added = headersOf(httpResponse.value.responseHeadersToAdd);
    return {
      ...{ code, status: 200, headers, removed, metadata, text: "", reason: undefined },
      ...(Object.keys(added).length > 0 && { added }),
    };
  }
  const { status: http, body: text } = httpResponse.value;
  const json: Json = JSON.parse(text);
  const [info] = json.error.details;
  const reason = info.metadata.error_code ?? info.reason;
  return { code, status: http?.code ?? 0, headers, removed: [], metadata, text, reason };
}

function headersOf(options: readonly HeaderValueOption[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { header, appendAction, keepEmptyValue } of options) {
    const { key = "", value = "" } = header ?? {};
    if (appendAction !== AppendAction.OVERWRITE_IF_EXISTS_OR_ADD || !keepEmptyValue)
      throw new Error(`${key} may be lost`);
    if (Object.hasOwn(headers, key)) throw new Error(`${key} twice`);
    headers[key] = value;
  }
  return headers;
}

import { create, type Registry } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { compressedFlag, mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  errorToJsonBytes,
  parseTimeout as parseConnectTimeout,
} from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { isShared, memoize } from "../../lib/memoize.ts";
import { type CallCounters, rpcName } from "../call-metrics.ts";
import { grpcStatus } from "../connect/grpc-error.ts";
import { unexpectedCompression } from "../connect/read-errors.ts";
import { errorResponse, jsonFields } from "../errors/error-body.ts";
import { HttpError } from "../errors/http-error.ts";
import { JSON_OPTIONS } from "../json/reader.ts";
import { readRestRules } from "../rest/http-rule.ts";
import type { Answer, FastCall, FastRoute, HeaderList } from "./call.ts";
import { type Codec, type FastRpc, malformed, type Response } from "./codecs.ts";

/** The routes of `POST` requests: by path, then by content type. */
export type RouteTable = ReadonlyMap<string, ReadonlyMap<string, FastRoute>>;

const JSON_TYPES = ["application/json", "application/json; charset=utf-8"];
const PROTO_TYPES = ["application/proto"];
const GRPC_TYPES = ["application/grpc", "application/grpc+proto"];

/** Returns the routes of RPCs over REST, Connect and gRPC. `registry` has the types of error details. */
export function makeFastRoutes(rpcs: readonly FastRpc[], counters: CallCounters, registry: Registry): RouteTable {
  const table = new Map<string, Map<string, FastRoute>>();
  for (const fast of rpcs) {
    const { json, proto } = fast;
    const byType = [
      ...typed(JSON_TYPES, connectRoute(fast, json, "json", counters)),
      ...typed(PROTO_TYPES, connectRoute(fast, proto, "proto", counters)),
      ...typed(GRPC_TYPES, grpcRoute(fast, counters)),
    ];
    table.set(`/${rpcName(fast.rpc)}`, new Map(byType));
    const rest = new Map(typed(JSON_TYPES, restRoute(fast, counters, registry)));
    for (const path of restPaths(fast)) table.set(path, rest);
  }
  return table;
}

function typed(types: readonly string[], route: FastRoute): [type: string, route: FastRoute][] {
  return types.map((type) => [type, route]);
}

/** Returns the paths without variables whose request body is the whole message. */
function restPaths({ rpc }: FastRpc): string[] {
  const rules = readRestRules(rpc.method).filter(
    ({ httpMethod, variables, body }) => httpMethod === "POST" && variables.length === 0 && body.kind === "whole",
  );
  return rules.map(({ template }) => template.text);
}

function restRoute({ rpc, json }: FastRpc, counters: CallCounters, registry: Registry): FastRoute {
  const { input } = rpc.method;
  const errorOf = memoize((error: ConnectError) => errorResponse(error, registry));
  return {
    rpc,
    protocol: "rest",
    counter: counters.of(rpcName(rpc), "rest"),
    maxBodyBytes: rpc.maxRequestBytes,
    decode: (bytes) => (bytes.length === 0 ? create(input) : json.read(bytes)),
    answer(call, response) {
      const body = json.write(response);
      return { status: 200, headers: call.responseHeaders(jsonFields(body)), body };
    },
    refuse(call, error) {
      const { code: status, headers, body } = errorOf(error);
      // The handler may have set it before it failed.
      call.removeHeader("etag");
      for (const name in headers) call.setHeader(name, headers[name] ?? "");
      return { status, headers: call.responseHeaders(), body };
    },
  };
}

/** The Connect protocol, unary: https://connectrpc.com/docs/protocol/#unary-rpcs-request-response */
function connectRoute({ rpc }: FastRpc, codec: Codec, name: "json" | "proto", counters: CallCounters): FastRoute {
  const type = `application/${name}`;
  return {
    rpc,
    protocol: "connect",
    counter: counters.of(rpcName(rpc), "connect"),
    maxBodyBytes: rpc.maxRequestBytes,
    deadline: {
      header: "connect-timeout-ms",
      parse: (value) => parseConnectTimeout(value, Number.MAX_SAFE_INTEGER).timeoutMs,
    },
    decode: codec.read,
    answer: (call, response) => answer(200, headersOf(call, type), codec.write(response)),
    refuse(call, error) {
      const headers = new Headers();
      const own = headersOf(call, "application/json");
      for (let i = 0; i + 1 < own.length; i += 2) headers.append(`${own[i]}`, `${own[i + 1]}`);
      mergeNonProtocolHeaders(headers, error.metadata);
      return answer(codeToHttpStatus(error.code), [...headers].flat(), errorToJsonBytes(error, JSON_OPTIONS));
    },
  };
}

/** Trailers of a unary call are headers with a prefix. */
function headersOf(call: FastCall, type: string): HeaderList {
  const headers = ["content-type", type, ...call.responseHeaders()];
  for (const name in call.trailers) headers.push(`trailer-${name}`, call.trailers[name] ?? "");
  return headers;
}

function answer(status: number, headers: HeaderList, body: string | Uint8Array): Answer {
  headers.push("content-length", String(Buffer.byteLength(body)));
  return { status, headers, body };
}

const OK = Object.freeze({ "grpc-status": "0" });
const NO_BODY = new Uint8Array();
const GRPC_TYPE = "application/grpc+proto";

/** gRPC over HTTP/2, unary: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
function grpcRoute({ rpc, proto }: FastRpc, counters: CallCounters): FastRoute {
  const { maxRequestBytes } = rpc;
  const frame = memoize((response: Response) => framed(response, proto));
  return {
    rpc,
    protocol: "grpc",
    counter: counters.of(rpcName(rpc), "grpc"),
    maxBodyBytes: maxRequestBytes + HEAD_BYTES,
    deadline: {
      header: "grpc-timeout",
      parse: (value) => parseGrpcTimeout(value, Number.MAX_SAFE_INTEGER).timeoutMs,
    },
    decode: (bytes) => proto.read(unframe(bytes, maxRequestBytes)),
    answer: (call, response) => ({
      status: 200,
      headers: ["content-type", GRPC_TYPE, ...call.responseHeaders()],
      body: frame(response),
      trailers: call.trailers === undefined ? OK : { ...call.trailers, ...OK },
    }),
    refuse(call, error) {
      const trailers = grpcStatus(error, new Headers(call.trailers));
      const headers = ["content-type", GRPC_TYPE, ...call.responseHeaders()];
      return { status: 200, headers, body: NO_BODY, trailers: Object.fromEntries(trailers) };
    },
  };
}

/** A memoized frame is copied: it must not keep the buffer pool alive that it was cut from. */
function framed(response: Response, codec: Codec): Uint8Array {
  const frame = toFrame(codec.write(response));
  return isShared(response) ? Buffer.from(new Uint8Array(frame).buffer) : frame;
}

/** The prefix of each gRPC and gRPC-Web message: a byte of flags and the length, big-endian. */
export const HEAD_BYTES = 5;

const LENGTH_AT = 1;
const LENGTH_BYTES = 4;

export function toFrame(message: string | Uint8Array, flags = 0): Uint8Array {
  const length = Buffer.byteLength(message);
  const frame = Buffer.allocUnsafe(HEAD_BYTES + length);
  frame[0] = flags;
  frame.writeUInt32BE(length, LENGTH_AT);
  if (typeof message === "string") frame.write(message, HEAD_BYTES);
  else frame.set(message, HEAD_BYTES);
  return frame;
}

/** Whether the bytes are one frame, whole, and nothing else. */
export function isOneFrame(bytes: Uint8Array): boolean {
  return bytes.length >= HEAD_BYTES && lengthAt(bytes, LENGTH_AT) === bytes.length - HEAD_BYTES;
}

/** Returns the one message of a unary call. `limit` in bytes. Throws what Connect's handler answers to the same bytes. */
export function unframe(bytes: Uint8Array, limit: number): Uint8Array {
  if (bytes.length === 0) throw missing();
  const end = endOfFrame(bytes, 0, limit);
  if (end < bytes.length) {
    endOfFrame(bytes, end, limit);
    throw new ConnectError("protocol error: received extra input message for unary method", Code.Unimplemented);
  }
  return bytes.subarray(HEAD_BYTES);
}

function endOfFrame(bytes: Uint8Array, start: number, limit: number): number {
  const here = bytes.length - start;
  if (here < HEAD_BYTES) throw malformed();
  const length = lengthAt(bytes, start + LENGTH_AT);
  if (length > limit) throw new HttpError("BODY_TOO_LARGE");
  // Connect's handler does the same: it ignores a prefix that nothing follows.
  if (start === 0 && here === HEAD_BYTES && length > 0) throw missing();
  const end = start + HEAD_BYTES + length;
  const flags = bytes[start] ?? 0;
  if (end > bytes.length) throw malformed();
  if ((flags & compressedFlag) !== 0) throw unexpectedCompression();
  return end;
}

function missing(): Error {
  return new ConnectError("protocol error: missing input message for unary method", Code.Unimplemented);
}

/** Without a DataView, which costs more to create than to read four bytes. */
function lengthAt(bytes: Uint8Array, index: number): number {
  let length = 0;
  for (let i = index; i < index + LENGTH_BYTES; i++) length = length * 256 + (bytes[i] ?? 0);
  return length;
}

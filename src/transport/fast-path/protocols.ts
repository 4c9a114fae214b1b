import { create, type Message } from "@bufbuild/protobuf";
import { mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import type { Rpc } from "../../api/rpc.ts";
import { memoize } from "../../lib/memoize.ts";
import type { CallCounters } from "../pipeline/access-log.ts";
import { readRestRules } from "../rest/http-rule.ts";
import { CONNECT_DEADLINE, GRPC_DEADLINE } from "../wire/deadline.ts";
import { errorResponse, jsonFields } from "../wire/error-body.ts";
import { grpcStatus, HEAD_BYTES, toFrame, unframe } from "../wire/grpc.ts";
import { JSON_OPTIONS } from "../wire/json/reader.ts";
import { rpcName } from "../wire/protocol.ts";
import type { Answer, FastCall, FastRoute, HeaderList } from "./call.ts";
import type { Codec, FastRpc, Response } from "./codecs.ts";

const JSON_TYPES = ["application/json", "application/json; charset=utf-8"];
const PROTO_TYPES = ["application/proto"];
export const GRPC_TYPES = ["application/grpc", "application/grpc+proto"];

/** Returns the routes of `POST` requests: by path, then by content type. */
export function makeFastRoutes(rpcs: readonly FastRpc[], counters: CallCounters) {
  const table = new Map<string, ReadonlyMap<string, FastRoute>>();
  for (const { rpc, json, proto } of rpcs) {
    const name = rpcName(rpc);
    const routes = (types: readonly string[], form: RouteForm) => {
      const route = { ...form, rpc, name, counter: counters.of(name, form.protocol) };
      return types.map((type) => [type, route] as const);
    };
    const rpcRoutes = [
      ...routes(JSON_TYPES, connectForm(rpc, json, "application/json")),
      ...routes(PROTO_TYPES, connectForm(rpc, proto, "application/proto")),
      ...routes(GRPC_TYPES, grpcForm(rpc.maxRequestBytes, proto)),
    ];
    table.set(`/${name}`, new Map(rpcRoutes));
    const restRoutes = new Map(routes(JSON_TYPES, restForm(rpc, json)));
    for (const path of restPaths(rpc)) table.set(path, restRoutes);
  }
  return table;
}

/** A protocol and encoding of an RPC. */
type RouteForm<Req = Message, Res = Response> = Omit<FastRoute<Req, Res>, "rpc" | "name" | "counter">;

/** Returns the paths without variables whose request body is the whole message. */
function restPaths({ method }: Rpc): string[] {
  const rules = readRestRules(method).filter(
    ({ httpMethod, variables, body }) => httpMethod === "POST" && variables.length === 0 && body.kind === "whole",
  );
  return rules.map(({ template }) => template.text);
}

const errorOf = memoize(errorResponse);

function restForm({ method, maxRequestBytes }: Rpc, json: Codec): RouteForm {
  return {
    protocol: "rest",
    maxBodyBytes: maxRequestBytes,
    decode: (bytes, call) => (bytes.length === 0 ? create(method.input) : json.read(bytes, call)),
    answer(call, response) {
      const body = json.write(response);
      return { status: 200, headers: call.responseHeaders(jsonFields(body)), body };
    },
    reject(call, error) {
      const { code: status, headers, body } = errorOf(error);
      return { status, headers: call.responseHeaders(headers), body };
    },
  };
}

/** The Connect protocol, unary: https://connectrpc.com/docs/protocol/#unary-rpcs-request-response */
function connectForm({ maxRequestBytes }: Rpc, codec: Codec, type: string): RouteForm {
  return {
    protocol: "connect",
    maxBodyBytes: maxRequestBytes,
    deadline: CONNECT_DEADLINE,
    decode: codec.read,
    answer: (call, response) => answer(200, headersOf(call, type), codec.write(response)),
    reject(call, error) {
      const headers = new Headers();
      mergeNonProtocolHeaders(headers, error.metadata);
      const fields = [...headersOf(call, "application/json"), ...[...headers].flat()];
      return answer(codeToHttpStatus(error.code), fields, errorToJsonBytes(error, JSON_OPTIONS));
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
export function grpcForm<Req, Res extends object>(
  maxRequestBytes: number,
  proto: Codec<Uint8Array, Req, Res>,
): RouteForm<Req, Res> {
  const frame = (response: Res) => toFrame(proto.write(response));
  return {
    protocol: "grpc",
    maxBodyBytes: maxRequestBytes + HEAD_BYTES,
    deadline: GRPC_DEADLINE,
    decode: (bytes, call) => proto.read(unframe(bytes, maxRequestBytes), call),
    answer: (call, response) => ({
      status: 200,
      headers: ["content-type", GRPC_TYPE, ...call.responseHeaders()],
      body: frame(response),
      trailers: call.trailers === undefined ? OK : { ...call.trailers, ...OK },
    }),
    reject(call, error) {
      const trailers = grpcStatus(error, new Headers(call.trailers));
      const headers = ["content-type", GRPC_TYPE, ...call.responseHeaders()];
      return { status: 200, headers, body: NO_BODY, trailers: Object.fromEntries(trailers) };
    },
  };
}

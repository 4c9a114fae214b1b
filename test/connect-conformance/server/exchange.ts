import { create, type MessageShape } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import type { Call } from "../../../src/api/rpc.ts";
import { ConnectCall } from "../../../src/transport/connect/call.ts";
import { FastCall } from "../../../src/transport/fast-path/call.ts";
import { ConformancePayload_RequestInfoSchema, type Header } from "./gen/connectrpc/conformance/v1/service_pb.js";

/** The parts of a call that the service reads and sets, unary or streaming. */
export interface Exchange {
  readonly requestHeaders: Iterable<readonly [name: string, value: string]>;
  readonly timeoutMs: number | undefined;
  setHeader(name: string, value: string): void;
  setTrailer(name: string, value: string): void;
}

export function ofCall(call: Call): Exchange {
  return {
    requestHeaders: headersOf(call),
    timeoutMs: timeoutOf(call),
    setHeader: (name, value) => call.setHeader(name, value),
    setTrailer: (name, value) => call.setTrailer(name, value),
  };
}

/** RPCs of Keyhold read single headers. Without the pseudo-headers of HTTP/2. */
function headersOf(call: Call): [name: string, value: string][] {
  const headers = call instanceof FastCall ? call.requestHeaders : call instanceof ConnectCall && call.request.headers;
  const names = Object.keys(headers).filter((name) => !name.startsWith(":"));
  return names.map((name) => [name, call.header(name) ?? ""]);
}

/** RPCs of Keyhold do not read their deadline. */
function timeoutOf(call: Call): number | undefined {
  const parse = (name: string, parser: typeof parseGrpcTimeout) =>
    parser(call.header(name) ?? null, Number.MAX_SAFE_INTEGER).timeoutMs;
  return parse("grpc-timeout", parseGrpcTimeout) ?? parse("connect-timeout-ms", parseConnectTimeout);
}

export function ofContext({ requestHeader, responseHeader, responseTrailer, timeoutMs }: HandlerContext): Exchange {
  return {
    requestHeaders: requestHeader,
    timeoutMs: timeoutMs(),
    setHeader: (name, value) => responseHeader.set(name, value),
    setTrailer: (name, value) => responseTrailer.set(name, value),
  };
}

interface Definition {
  readonly responseHeaders: readonly Header[];
  readonly responseTrailers: readonly Header[];
}

/** Sets the requested response metadata. Repeated values are joined (RFC 9110 §5.3). */
export function setMetadata({ setHeader, setTrailer }: Exchange, definition: Definition | undefined): void {
  for (const { name, value } of definition?.responseHeaders ?? []) setHeader(name, value.join(", "));
  for (const { name, value } of definition?.responseTrailers ?? []) setTrailer(name, value.join(", "));
}

/** Returns the description of the call for its client. */
export function requestInfo(
  { requestHeaders, timeoutMs }: Exchange,
  requests: Any[],
): MessageShape<typeof ConformancePayload_RequestInfoSchema> {
  return create(ConformancePayload_RequestInfoSchema, {
    requestHeaders: [...requestHeaders].map(([name, value]) => ({ name, value: [value] })),
    requests,
    ...(timeoutMs !== undefined && { timeoutMs: BigInt(Math.trunc(timeoutMs)) }),
  });
}

import { parseTimeout } from "@connectrpc/connect/protocol-grpc";
import type { Rpc } from "../../api/rpc.ts";
import { memoize } from "../../lib/memoize.ts";
import { type CallCounters, rpcName } from "../call-metrics.ts";
import { grpcStatus } from "../connect/grpc-error.ts";
import { HEAD_BYTES, toFrame, unframe } from "./grpc-frame.ts";
import type { Codec, FastRoute, Response } from "./route.ts";

const OK = Object.freeze({ "grpc-status": "0" });
const NO_BODY = new Uint8Array();
const TYPE = "application/grpc+proto";

/** gRPC over HTTP/2, unary: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
export function grpcRoute(rpc: Rpc, codec: Codec, counters: CallCounters): FastRoute {
  const { maxRequestBytes } = rpc;
  const frame = memoize((response: Response) => framed(response, codec));
  return {
    rpc,
    protocol: "grpc",
    counter: counters.of(rpcName(rpc), "grpc"),
    maxBodyBytes: maxRequestBytes + HEAD_BYTES,
    deadline: {
      header: "grpc-timeout",
      parse: (value) => parseTimeout(value, Number.MAX_SAFE_INTEGER).timeoutMs,
    },
    decode: (bytes) => codec.read(unframe(bytes, maxRequestBytes)),
    answer: (call, response) => ({
      status: 200,
      headers: ["content-type", TYPE, ...call.responseHeaders()],
      body: frame(response),
      trailers: call.trailers === undefined ? OK : { ...call.trailers, ...OK },
    }),
    refuse(call, error) {
      const trailers = grpcStatus(error, new Headers(call.trailers));
      const headers = ["content-type", TYPE, ...call.responseHeaders()];
      return { status: 200, headers, body: NO_BODY, trailers: Object.fromEntries(trailers) };
    },
  };
}

/** A memoized frame is copied: it must not keep the buffer pool alive that it was cut from. */
function framed(response: Response, codec: Codec): Uint8Array {
  const frame = toFrame(codec.write(response));
  return Object.isFrozen(response) ? Buffer.from(new Uint8Array(frame).buffer) : frame;
}

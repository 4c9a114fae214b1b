import { compressedFlag } from "@connectrpc/connect/protocol";
import { parseTimeout, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { toConnectError } from "../../api/errors.ts";
import type { Rpc } from "../../api/rpc.ts";
import { onceFrozen } from "../../lib/once-frozen.ts";
import { type CallCounters, codeName, rpcName } from "../calls.ts";
import { unescapeMessage } from "../connect/grpc-message.ts";
import { refused } from "../connect/refusal.ts";
import type { LaneCall } from "./call.ts";
import type { Codec } from "./codec.ts";
import { acceptedCompression, MIN_COMPRESSED_BYTES } from "./compression.ts";
import type { Answer } from "./exchange.ts";
import { HEAD_BYTES, toFrame, unframe } from "./frame.ts";
import type { Response, Route } from "./route.ts";
import { timeoutOf } from "./timeout.ts";

const OK = Object.freeze({ "grpc-status": "0" });
const NO_BODY = new Uint8Array();

/** gRPC over HTTP/2, unary: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
export function grpcRoute(rpc: Rpc, codec: Codec, counters: CallCounters): Route {
  const type = `application/grpc+${codec.name}`;
  const { maxRequestBytes } = rpc;
  const frame = onceFrozen((response: Response) => framed(response, codec));
  return {
    rpc,
    protocol: "grpc",
    counter: counters.of(rpcName(rpc), "grpc"),
    maxBodyBytes: maxRequestBytes + HEAD_BYTES,
    timeout: (exchange) => timeoutOf(parseTimeout, exchange.header("grpc-timeout")),
    decode: (bytes) => codec.read(unframe(bytes, maxRequestBytes)),
    tooLarge: () => refused("BODY_TOO_LARGE"),
    answer: (call, response) => answer(call, type, frame(response)),
    refuse: (call, cause) => refuse(call, type, cause),
  };
}

/** What is kept must not keep the pool of buffers that it was cut from. */
function framed(response: Response, codec: Codec): Uint8Array {
  const frame = toFrame(codec.write(response));
  return Object.isFrozen(response) ? Buffer.from(new Uint8Array(frame).buffer) : frame;
}

function answer(call: LaneCall, type: string, frame: Uint8Array): Answer | Promise<Answer> {
  const accepted = acceptedCompression(call.header("grpc-accept-encoding"));
  const headers = ["content-type", type, ...call.responseHeaders()];
  if (accepted === null) return { status: 200, headers, body: frame, trailers: OK };
  headers.push("grpc-encoding", accepted.name);
  const message = frame.subarray(HEAD_BYTES);
  if (message.length < MIN_COMPRESSED_BYTES) return { status: 200, headers, body: frame, trailers: OK };
  return accepted.compress(message).then((compressed) => {
    return { status: 200, headers, body: toFrame(compressed, compressedFlag), trailers: OK };
  });
}

function refuse(call: LaneCall, type: string, cause: unknown): Answer {
  const error = toConnectError(cause);
  call.add({ code: codeName(error.code) });
  const headers = ["content-type", type, ...call.responseHeaders()];
  const accepted = acceptedCompression(call.header("grpc-accept-encoding"));
  if (accepted !== null) headers.push("grpc-encoding", accepted.name);
  const trailers = new Headers();
  setTrailerStatus(trailers, error);
  unescapeMessage(trailers);
  return { status: 200, headers, body: NO_BODY, trailers: Object.fromEntries(trailers) };
}

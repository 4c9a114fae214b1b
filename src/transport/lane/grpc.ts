import { Code } from "@connectrpc/connect";
import { compressedFlag } from "@connectrpc/connect/protocol";
import { parseTimeout, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { toConnectError } from "../../api/errors.ts";
import type { Rpc } from "../../api/rpc.ts";
import { unescapeMessage } from "../connect/grpc-message.ts";
import { refused } from "../connect/refusal.ts";
import type { LaneCall } from "./call.ts";
import type { Codec } from "./codec.ts";
import { acceptedCompression, MIN_COMPRESSED_BYTES } from "./compression.ts";
import type { Answer } from "./exchange.ts";
import { HEAD_BYTES, toFrame, unframe } from "./frame.ts";
import type { Route } from "./route.ts";
import { timeoutOf } from "./timeout.ts";

const OK = Object.freeze({ "grpc-status": "0" });
const NO_BODY = new Uint8Array();

/** gRPC over HTTP/2, unary: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
export function grpcRoute(rpc: Rpc, codec: Codec): Route {
  const type = `application/grpc+${codec.name}`;
  const { maxRequestBytes } = rpc;
  return {
    rpc,
    maxBodyBytes: maxRequestBytes + HEAD_BYTES,
    timeout: (exchange) => timeoutOf(parseTimeout, exchange.header("grpc-timeout")),
    decode: (bytes) => codec.read(unframe(bytes, maxRequestBytes)),
    tooLarge: () => refused("BODY_TOO_LARGE"),
    answer: (call, response) => answer(call, type, codec.write(response)),
    refuse: (call, cause) => refuse(call, type, cause),
  };
}

function answer(call: LaneCall, type: string, message: string | Uint8Array): Answer | Promise<Answer> {
  const accepted = acceptedCompression(call.header("grpc-accept-encoding"));
  const headers = ["content-type", type, ...call.responseHeaders()];
  if (accepted === null) return { status: 200, headers, body: toFrame(message), trailers: OK };
  headers.push("grpc-encoding", accepted.name);
  if (Buffer.byteLength(message) < MIN_COMPRESSED_BYTES) {
    return { status: 200, headers, body: toFrame(message), trailers: OK };
  }
  return accepted.compress(Buffer.from(message)).then((compressed) => {
    return { status: 200, headers, body: toFrame(compressed, compressedFlag), trailers: OK };
  });
}

function refuse(call: LaneCall, type: string, cause: unknown): Answer {
  const error = toConnectError(cause);
  call.add({ code: Code[error.code] });
  const headers = ["content-type", type, ...call.responseHeaders()];
  const accepted = acceptedCompression(call.header("grpc-accept-encoding"));
  if (accepted !== null) headers.push("grpc-encoding", accepted.name);
  const trailers = new Headers();
  setTrailerStatus(trailers, error);
  unescapeMessage(trailers);
  return { status: 200, headers, body: NO_BODY, trailers: Object.fromEntries(trailers) };
}

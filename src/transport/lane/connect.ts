import { mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorToJsonBytes, parseTimeout } from "@connectrpc/connect/protocol-connect";
import { toConnectError } from "../../api/errors.ts";
import type { Rpc } from "../../api/rpc.ts";
import { type CallCounters, codeName, rpcName } from "../calls.ts";
import { refused } from "../connect/refusal.ts";
import { JSON_OPTIONS } from "../json-options.ts";
import type { LaneCall } from "./call.ts";
import type { Codec } from "./codec.ts";
import { acceptedCompression, MIN_COMPRESSED_BYTES } from "./compression.ts";
import type { Answer, Fields } from "./exchange.ts";
import { fromHeaders, toHeaders } from "./fields.ts";
import type { Route } from "./route.ts";
import { timeoutOf } from "./timeout.ts";

/** The Connect protocol, unary: https://connectrpc.com/docs/protocol/#unary-rpcs-request-response */
export function connectRoute(rpc: Rpc, codec: Codec, counters: CallCounters): Route {
  const type = `application/${codec.name}`;
  return {
    rpc,
    protocol: "connect",
    counter: counters.of(rpcName(rpc), "connect"),
    maxBodyBytes: rpc.maxRequestBytes,
    timeout: (exchange) => timeoutOf(parseTimeout, exchange.header("connect-timeout-ms")),
    decode: codec.read,
    tooLarge: () => refused("BODY_TOO_LARGE"),
    answer: (call, response) =>
      answer(call, 200, ["content-type", type, ...call.responseHeaders()], codec.write(response)),
    refuse,
  };
}

function refuse(call: LaneCall, cause: unknown) {
  const error = toConnectError(cause);
  call.add({ code: codeName(error.code) });
  const headers = toHeaders(["content-type", "application/json", ...call.responseHeaders()]);
  mergeNonProtocolHeaders(headers, error.metadata);
  return answer(call, codeToHttpStatus(error.code), fromHeaders(headers), errorToJsonBytes(error, JSON_OPTIONS));
}

function answer({ exchange }: LaneCall, status: number, headers: Fields, body: string | Uint8Array) {
  const length = Buffer.byteLength(body);
  const compression = length < MIN_COMPRESSED_BYTES ? null : acceptedCompression(exchange.header("accept-encoding"));
  if (compression === null) {
    headers.push("content-length", String(length));
    return { status, headers, body };
  }
  headers.push("content-encoding", compression.name);
  return compression.compress(Buffer.from(body)).then((compressed): Answer => {
    headers.push("content-length", String(compressed.length));
    return { status, headers, body: compressed };
  });
}

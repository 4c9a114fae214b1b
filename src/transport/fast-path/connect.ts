import { mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorToJsonBytes, parseTimeout } from "@connectrpc/connect/protocol-connect";
import type { Rpc } from "../../api/rpc.ts";
import { type CallCounters, rpcName } from "../call-metrics.ts";
import { JSON_OPTIONS } from "../rest/json-message.ts";
import type { FastCall } from "./call.ts";
import type { Answer, Codec, FastRoute, HeaderList } from "./route.ts";

/** The Connect protocol, unary: https://connectrpc.com/docs/protocol/#unary-rpcs-request-response */
export function connectRoute(rpc: Rpc, codec: Codec, name: "json" | "proto", counters: CallCounters): FastRoute {
  const type = `application/${name}`;
  return {
    rpc,
    protocol: "connect",
    counter: counters.of(rpcName(rpc), "connect"),
    maxBodyBytes: rpc.maxRequestBytes,
    deadline: {
      header: "connect-timeout-ms",
      parse: (value) => parseTimeout(value, Number.MAX_SAFE_INTEGER).timeoutMs,
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

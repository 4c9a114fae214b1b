import { create, type Registry } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { Rpc } from "../../api/rpc.ts";
import { memoize } from "../../lib/memoize.ts";
import { type CallCounters, rpcName } from "../call-metrics.ts";
import { errorHeaders, toErrorBody } from "../errors/error-body.ts";
import type { Codec, FastRoute } from "./route.ts";

/** A REST path (contract §2, §6). */
export function restRoute(rpc: Rpc, codec: Codec, counters: CallCounters, registry: Registry): FastRoute {
  const { input } = rpc.method;
  // Memoized by identity: errors that are thrown again and again are frozen.
  const errorOf = memoize((error: ConnectError) => {
    const content = toErrorBody(error, registry);
    const body = JSON.stringify(content);
    return { status: content.error.code, body, headers: [...Object.entries(fieldsOf(body)), ...errorHeaders(error)] };
  });
  return {
    rpc,
    protocol: "rest",
    counter: counters.of(rpcName(rpc), "rest"),
    maxBodyBytes: rpc.maxRequestBytes,
    decode: (bytes) => (bytes.length === 0 ? create(input) : codec.read(bytes)),
    answer(call, response) {
      const body = codec.write(response);
      return { status: 200, headers: call.responseHeaders(fieldsOf(body)), body };
    },
    refuse(call, error) {
      const { status, headers, body } = errorOf(error);
      // What a handler may have set for a response that it then did not give.
      call.removeHeader("etag");
      for (const [name, value] of headers) call.setHeader(name, value);
      return { status, headers: call.responseHeaders(), body };
    },
  };
}

function fieldsOf(body: string | Uint8Array): Readonly<Record<string, string>> {
  return {
    "cache-control": "no-store",
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(body)),
  };
}

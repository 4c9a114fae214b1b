import type { Call, Rpc } from "../api/rpc.ts";
import type { RpcSpan } from "../observability/tracing/rpc-span.ts";
import type { Tracing } from "../observability/tracing/tracing.ts";
import { rpcName } from "./call-metrics.ts";

/** Decorates an RPC with a span per call, from authentication to the response. */
export function traceRpc(rpc: Rpc, tracing: Tracing): Rpc {
  const name = rpcName(rpc);
  const spans = new WeakMap<Call, RpcSpan>();
  return {
    ...rpc,
    admit(call) {
      // A call with a slow body is authorized twice.
      const known = spans.get(call);
      if (known !== undefined) return known.run(() => rpc.admit(call));
      const span = tracing.begin(name, (header) => call.header(header));
      spans.set(call, span);
      call.log.add({ trace_id: span.traceId });
      call.log.onEnd((code, protocol) => span.end(code, protocol));
      return span.run(() => rpc.admit(call));
    },
    invoke(request, principal, call) {
      const work = () => rpc.invoke(request, principal, call);
      return spans.get(call)?.run(work) ?? work();
    },
  };
}

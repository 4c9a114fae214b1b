import type { Call, Rpc } from "../api/rpc.ts";
import { rpcName } from "./call-metrics.ts";

/** Traces calls. */
export interface CallTracer {
  /** Starts the span of a call of the RPC `package.Service/Method`; the client may have sent `traceparent`. */
  begin(rpc: string, header: (name: string) => string | undefined): CallSpan;
}

export interface CallSpan {
  readonly traceId: string;
  /** Runs work in the span. */
  run<T>(work: () => T): T;
  /** `code` is the name of a gRPC code. */
  end(code: string, protocol: string): void;
}

/** Decorates an RPC with a span per call, from authentication to the response. */
export function traceRpc(rpc: Rpc, tracer: CallTracer): Rpc {
  const name = rpcName(rpc);
  const spans = new WeakMap<Call, CallSpan>();
  return {
    ...rpc,
    admit(call) {
      // A call with a slow body is authorized twice.
      const known = spans.get(call);
      if (known !== undefined) return known.run(() => rpc.admit(call));
      const span = tracer.begin(name, (header) => call.header(header));
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

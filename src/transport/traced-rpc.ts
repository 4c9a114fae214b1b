import type { Call, Rpc } from "../api/rpc.ts";
import { rpcName } from "./call-metrics.ts";

/** Whoever traces calls. */
export interface CallTracer {
  /** Begins the span of a call of the RPC `package.Service/Method`, whose caller may have sent `traceparent`. */
  begin(rpc: string, header: (name: string) => string | undefined): CallSpan;
}

export interface CallSpan {
  readonly traceId: string;
  /** Does work within the span. */
  run<T>(work: () => T): T;
  /** `code` is the name of a gRPC code. */
  end(code: string, protocol: string): void;
}

/** An RPC with a span for each of its calls, from the question who calls to the answer. */
export function traceRpc(rpc: Rpc, tracer: CallTracer): Rpc {
  const name = rpcName(rpc);
  const spans = new WeakMap<Call, CallSpan>();
  return {
    ...rpc,
    admit(call) {
      // A call whose body took its time is judged twice.
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

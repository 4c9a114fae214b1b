import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { toConnectError } from "../api/errors.ts";
import { logKeys } from "../api/log-fields.ts";
import type { Implementation } from "../api/row.ts";
import type { Call, Rpc } from "../api/rpc.ts";
import { requireValid } from "../api/validation.ts";
import type { Guard } from "../auth/guard.ts";
import { KeyholdError } from "../domain/errors.ts";
import type { Principal } from "../domain/principal.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";
import { share } from "../lib/memoize.ts";
import type { RpcSpan } from "../observability/tracing/rpc-span.ts";
import type { Tracing } from "../observability/tracing/tracing.ts";
import { codeName, rpcName } from "./call-metrics.ts";
import type { ConcurrencyLimiter } from "./concurrency-limiter.ts";

/** Internal errors and unavailable dependencies: logged with their cause. Other codes are client errors. */
const FAULTS: ReadonlySet<Code> = new Set([Code.Internal, Code.Unknown, Code.Unavailable, Code.DataLoss]);

/** The default of every RPC. */
const MAX_REQUEST_BYTES = 2 ** 20;

const OVERLOADED = share({ reason: "OVERLOADED" });

/**
 * Decorates an implementation with authorization, validation, load shedding and the error table. Every transport uses it, so calls are
 * counted here.
 */
export function createRpc(implementation: Implementation, guard: Guard, limiter: ConcurrencyLimiter): Rpc {
  const { method, maxRequestBytes = MAX_REQUEST_BYTES, acceptsCompression, mayAnswerFromCache } = implementation;
  const facts = share({ rpc: rpcName(implementation) });
  const admit = (call: Call): MaybePromise<Principal> => {
    call.log.add(facts);
    // Before the body is read, because it may be large.
    if (mayAnswerFromCache !== true) limiter.assertCapacity();
    const principal = guard(implementation, call);
    return principal instanceof Promise ? limiter.track(principal) : principal;
  };
  const logKey = (response: Response, request: Message, call: Call): Response => {
    const keyId = implementation.keyId?.(request, response);
    if (keyId !== undefined && keyId !== "") call.log.add({ key_id: keyId });
    return response;
  };
  const answer = (request: Message, principal: Principal, call: Call): MaybePromise<Response> => {
    requireValid(method.input, request, implementation.check);
    if (mayAnswerFromCache !== true) limiter.assertCapacity();
    const response = implementation.handler(request, principal, call);
    if (!(response instanceof Promise)) return logKey(response, request, call);
    const answered = limiter.track(response, implementation.cost?.(request) ?? 1);
    return implementation.keyId === undefined ? answered : answered.then((known) => logKey(known, request, call));
  };
  return {
    method,
    maxRequestBytes,
    acceptsCompression,
    admit: (call) => reported(call, limiter, () => admit(call)),
    invoke: (request, principal, call) => reported(call, limiter, () => answer(request, principal, call)),
  };
}

type Response = MessageInitShape<Implementation["method"]["output"]>;

function reported<T>(call: Call, limiter: ConcurrencyLimiter, work: () => MaybePromise<T>): MaybePromise<T> {
  try {
    const result = work();
    if (!(result instanceof Promise)) return result;
    return result.catch((error: unknown) => {
      throw report(error, call, limiter);
    });
  } catch (error) {
    throw report(error, call, limiter);
  }
}

function report(cause: unknown, { log }: Call, limiter: ConcurrencyLimiter): Error {
  const error = toConnectError(cause);
  log.add({ code: codeName(error.code) });
  if (cause instanceof KeyholdError) logKeys(log, cause.changedKeyIds);
  // The access log has it. Another entry with a stack for each would be a load of its own.
  if (cause instanceof KeyholdError && cause.code === "OVERLOADED") {
    limiter.rejections++;
    log.add(OVERLOADED);
  } else if (FAULTS.has(error.code)) log.fault(error.cause ?? cause);
  return error;
}

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

import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { logKeys } from "../../api/log-fields.ts";
import type { Implementation } from "../../api/row.ts";
import type { Call, Pipeline, Rpc } from "../../api/rpc.ts";
import { parseValid } from "../../api/validation.ts";
import type { Guard, GuardedRpc } from "../../auth/guard.ts";
import { KeyholdError } from "../../domain/errors.ts";
import type { Principal } from "../../domain/principal.ts";
import type { MaybePromise } from "../../lib/maybe-promise.ts";
import { memoizable } from "../../lib/memoize.ts";
import { networkOf } from "../../lib/network.ts";
import type { RpcSpan, Tracing } from "../../observability/tracing.ts";
import { rpcName, toLoggedError } from "../wire/protocol.ts";
import { type ConcurrencyLimiter, countedCaller } from "./concurrency-limiter.ts";

/** Internal errors and unavailable dependencies: logged with their cause. Other codes are client errors. */
const FAULTS: ReadonlySet<Code> = new Set([Code.Internal, Code.Unknown, Code.Unavailable, Code.DataLoss]);

const OVERLOADED = memoizable({ reason: "OVERLOADED" });

/** An operation that a pipeline serves: a unary RPC, or an endpoint of a protocol that is no RPC. Optional members are as in `RpcRow`. */
export interface Endpoint<Request, Response> extends GuardedRpc {
  readonly mayAnswerFromCache?: boolean;
  /** Parses a request, and returns the function that executes it. Throws `INVALID_ARGUMENT`. */
  handler(request: Request): (principal: Principal, call: Call) => MaybePromise<Response>;
  cost?(request: Request): number;
  keyId?(request: Request, response: Response): string | undefined;
}

/** Decorates an endpoint with authorization, validation, load shedding, the error table, and tracing if there is a `tracing`. */
export function createPipeline<Request, Response>(
  endpoint: Endpoint<Request, Response>,
  guard: Guard,
  limiter: ConcurrencyLimiter,
  tracing?: Tracing,
): Pipeline<Request, Response> {
  const { name, mayAnswerFromCache } = endpoint;
  const rpcField = memoizable({ rpc: name });
  const admit = (call: Call): MaybePromise<Principal> => {
    call.log.add(rpcField);
    // Before the body is read, because it may be large.
    if (mayAnswerFromCache !== true) limiter.assertCapacity();
    const principal = guard(endpoint, call);
    if (principal instanceof Promise) return limiter.track(principal, networkOf(call.peerAddress));
    if (mayAnswerFromCache !== true) limiter.assertCapacity(countedCaller(principal));
    return principal;
  };
  const logKey = (response: Response, request: Request, call: Call): Response => {
    const keyId = endpoint.keyId?.(request, response);
    if (keyId !== undefined && keyId !== "") call.log.add({ key_id: keyId });
    return response;
  };
  const answer = (request: Request, principal: Principal, call: Call): MaybePromise<Response> => {
    const execute = endpoint.handler(request);
    if (mayAnswerFromCache !== true) limiter.assertCapacity(countedCaller(principal));
    const response = execute(principal, call);
    if (!(response instanceof Promise)) return logKey(response, request, call);
    const answered = limiter.track(response, countedCaller(principal), endpoint.cost?.(request));
    return endpoint.keyId === undefined ? answered : answered.then((value) => logKey(value, request, call));
  };
  // Without closures around the work: every verification would allocate them.
  const reported = <T>(result: MaybePromise<T>, call: Call): MaybePromise<T> =>
    result instanceof Promise ? result.catch((error) => fail(error, call)) : result;
  const fail = (error: unknown, call: Call): never => {
    throw report(error, call, limiter);
  };
  const pipeline: Pipeline<Request, Response> = {
    admit(call) {
      try {
        return reported(admit(call), call);
      } catch (error) {
        return fail(error, call);
      }
    },
    invoke(request, principal, call) {
      try {
        return reported(answer(request, principal, call), call);
      } catch (error) {
        return fail(error, call);
      }
    },
  };
  return tracing === undefined ? pipeline : tracePipeline(name, pipeline, tracing);
}

/** Returns what the client receives for an error, and logs a fault with its cause. */
export function report(cause: unknown, { log }: Call, limiter: ConcurrencyLimiter): Error {
  const error = toLoggedError(cause, log);
  if (cause instanceof KeyholdError) logKeys(log, cause.changedKeyIds);
  // The access log has it. Another entry with a stack for each would be a load of its own.
  if (cause instanceof KeyholdError && cause.code === "OVERLOADED") {
    limiter.countRejection();
    log.add(OVERLOADED);
  } else if (cause instanceof KeyholdError && cause.code === "DATABASE_UNAVAILABLE") log.outage(cause.cause ?? cause);
  else if (FAULTS.has(error.code)) log.fault(error.cause ?? cause);
  return error;
}

/** Decorates a pipeline with a span per call, from authentication to the response. */
function tracePipeline<Request, Response>(
  name: string,
  pipeline: Pipeline<Request, Response>,
  tracing: Tracing,
): Pipeline<Request, Response> {
  const spans = new WeakMap<Call, RpcSpan>();
  return {
    admit(call) {
      // A call with a slow body is authorized twice.
      const current = spans.get(call);
      if (current !== undefined) return current.run(() => pipeline.admit(call));
      const span = tracing.begin(name, (header) => call.header(header));
      spans.set(call, span);
      call.log.add({ trace_id: span.traceId });
      call.log.onEnd((code, protocol) => span.end(code, protocol));
      return span.run(() => pipeline.admit(call));
    },
    invoke(request, principal, call) {
      const work = () => pipeline.invoke(request, principal, call);
      return spans.get(call)?.run(work) ?? work();
    },
  };
}

/** The default of every RPC. */
export const MAX_REQUEST_BYTES = 2 ** 20;

/** Decorates an implementation with authorization, validation, load shedding, the error table and tracing. Every transport uses it. */
export function createRpc(
  implementation: Implementation,
  guard: Guard,
  limiter: ConcurrencyLimiter,
  tracing?: Tracing,
): Rpc {
  const { method, maxRequestBytes = MAX_REQUEST_BYTES, acceptsCompression, handler } = implementation;
  const endpoint = {
    ...implementation,
    name: rpcName(implementation),
    handler: (request: Message) => parseValid(method.input, request, handler),
  };
  const pipeline = createPipeline<Message, MessageInitShape<typeof method.output>>(endpoint, guard, limiter, tracing);
  return { method, maxRequestBytes, acceptsCompression, ...pipeline };
}

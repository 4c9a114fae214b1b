import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { toConnectError } from "../api/errors.ts";
import type { Implementation } from "../api/implementations.ts";
import { keyFacts, logKeys } from "../api/log-fields.ts";
import type { AdmittedCall, Call, Rpc } from "../api/rpc.ts";
import { requireValid } from "../api/validation.ts";
import { authorityOf, type Caller } from "../auth/caller.ts";
import type { Guard } from "../auth/guard.ts";
import { KeyholdError } from "../domain/errors.ts";
import { pageSizeOf } from "../keys/list.ts";
import type { MaybePromise } from "../lib/maybe-promise.ts";
import { memoize } from "../lib/memoize.ts";
import { codeName, rpcName } from "./call-metrics.ts";
import type { ConcurrencyLimiter } from "./concurrency-limiter.ts";

/** Faults of ours or of what we stand on: for the log with their cause. The other codes are the caller's affair. */
const FAULTS: ReadonlySet<Code> = new Set([Code.Internal, Code.Unknown, Code.Unavailable, Code.DataLoss]);

const OVERLOADED = Object.freeze({ reason: "OVERLOADED" });

const ITEMS_OF_A_UNIT = 10;

/**
 * Puts the guard, the rules of the protos and the bound of what waits in front of an implementation, and the table of errors behind
 * it. Every transport comes by here, so here is where calls are counted.
 */
export function createRpc(implementation: Implementation, guard: Guard, limiter: ConcurrencyLimiter): Rpc {
  const { method, maxRequestBytes, acceptsCompression = true, mayAnswerFromCache = false } = implementation;
  const facts = Object.freeze({ rpc: rpcName(implementation) });
  const identify = (call: Call) => {
    call.log.add(facts);
    // Before the body is read, which may be large.
    if (!mayAnswerFromCache) limiter.assertCapacity();
    const caller = guard(method, call);
    if (!(caller instanceof Promise)) return admitted(call, caller);
    return limiter.track(caller).then((known) => admitted(call, known));
  };
  const answer = (request: Message, admission: AdmittedCall): Answer => {
    requireValid(method.input, request);
    if (!mayAnswerFromCache) limiter.assertCapacity();
    const response = implementation.handler(request, admission);
    if (!(response instanceof Promise)) return response;
    const answered = limiter.track(response, unitsOf(request));
    return mayAnswerFromCache ? answered : answered.then((known) => told(known, request, admission.call));
  };
  return {
    method,
    maxRequestBytes,
    acceptsCompression,
    admit: (call) => reported(call, limiter, () => identify(call)),
    invoke: (request, admission) => reported(admission.call, limiter, () => answer(request, admission)),
  };
}

function admitted(call: Call, caller: Caller): AdmittedCall {
  const { facts, authority } = knownAs(caller);
  call.log.add(facts);
  return { call, authority };
}

/** Those that may be at hand tell the log themselves. */
function told<T extends object>(response: T, request: Message, { log }: Call): T {
  log.add(keyFacts(request, response));
  return response;
}

/** What the log and the implementations are told of a caller. */
const knownAs = memoize((caller: Caller) => ({
  facts: Object.freeze({ caller: `${caller.method}:${caller.subject}` }),
  authority: authorityOf(caller),
}));

type Answer = MaybePromise<MessageInitShape<Implementation["method"]["output"]>>;

/** What a call weighs while it waits: one for each ten of the items that it brings, or of those that its page may have. */
function unitsOf(request: Message): number {
  if ("requests" in request && Array.isArray(request.requests))
    return Math.ceil(request.requests.length / ITEMS_OF_A_UNIT);
  if ("pageSize" in request && typeof request.pageSize === "number") {
    return Math.ceil(pageSizeOf(request.pageSize) / ITEMS_OF_A_UNIT);
  }
  return 1;
}

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

/** The details of an error of the wire hold descriptors of protobuf, which are kilobytes and no news. */
function withoutDetails(error: unknown): unknown {
  if (!(error instanceof ConnectError)) return error;
  const { code, message, stack } = error;
  return Object.assign(new Error(message), { name: error.name, code, stack });
}

function report(cause: unknown, { log }: Call, limiter: ConcurrencyLimiter): Error {
  const error = toConnectError(cause);
  log.add({ code: codeName(error.code) });
  if (cause instanceof KeyholdError) logKeys(log, cause.changedKeyIds);
  // Its line says it. One more for each, with a stack, would be a load of its own.
  if (cause instanceof KeyholdError && cause.code === "OVERLOADED") {
    limiter.countRejection();
    log.add(OVERLOADED);
  } else if (FAULTS.has(error.code)) log.fault(error.cause ?? withoutDetails(cause));
  return error;
}

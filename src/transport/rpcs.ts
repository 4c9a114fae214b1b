import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { toConnectError } from "../api/errors.ts";
import type { Implementation } from "../api/implementations.ts";
import type { AdmittedCall, Call, Rpc } from "../api/rpc.ts";
import { requireValid } from "../api/validation.ts";
import { authorityOf, type Caller } from "../auth/caller.ts";
import type { Guard } from "../auth/guard.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import { onceFrozen } from "../lib/once-frozen.ts";

/** Faults of ours or of what we stand on: for the log with their cause. The other codes are the caller's affair. */
const FAULTS: ReadonlySet<Code> = new Set([Code.Internal, Code.Unknown, Code.Unavailable, Code.DataLoss]);

/** Puts the guard and the rules of the protos in front of an implementation, and the table of errors behind it. */
export function createRpc(implementation: Implementation, guard: Guard): Rpc {
  const { method, maxRequestBytes } = implementation;
  const facts = Object.freeze({ rpc: `${method.parent.typeName}/${method.name}` });
  const identify = (call: Call) => {
    call.log.add(facts);
    const caller = guard(method, (name) => call.header(name));
    return andThen(caller, (known) => admitted(call, known));
  };
  return {
    method,
    maxRequestBytes,
    admit: (call) => reported(call, () => identify(call)),
    invoke: (request, admission) => reported(admission.call, () => answer(implementation, request, admission)),
  };
}

function admitted(call: Call, caller: Caller): AdmittedCall {
  const { facts, authority } = told(caller);
  call.log.add(facts);
  return { call, authority };
}

/** What the log and the implementations are told of a caller. */
const told = onceFrozen((caller: Caller) => ({
  facts: Object.freeze({ caller: `${caller.method}:${caller.subject}` }),
  authority: authorityOf(caller),
}));

type Answer = MaybePromise<MessageInitShape<Implementation["method"]["output"]>>;

function answer({ method, handler }: Implementation, request: Message, admission: AdmittedCall): Answer {
  requireValid(method.input, request);
  return handler(request, admission);
}

function reported<T>(call: Call, work: () => MaybePromise<T>): MaybePromise<T> {
  try {
    const result = work();
    if (!(result instanceof Promise)) return result;
    return result.catch((error: unknown) => {
      throw report(error, call);
    });
  } catch (error) {
    throw report(error, call);
  }
}

function report(cause: unknown, { log }: Call): Error {
  const error = toConnectError(cause);
  log.add({ code: Code[error.code] });
  if (FAULTS.has(error.code)) log.fault(error.cause ?? error);
  return error;
}

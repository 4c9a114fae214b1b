import { create, type Message } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { toConnectError } from "../api/errors.ts";
import type { Implementation } from "../api/implementations.ts";
import type { Call, Rpc } from "../api/rpc.ts";
import { requireValid } from "../api/validation.ts";
import { authorityOf, type Caller } from "../auth/caller.ts";
import type { Guard } from "../auth/guard.ts";

/** Faults of ours or of what we stand on: for the log with their cause. The other codes are the caller's affair. */
const FAULTS: ReadonlySet<Code> = new Set([Code.Internal, Code.Unknown, Code.Unavailable, Code.DataLoss]);

/** Puts the guard and the rules of the protos in front of an implementation, and the table of errors behind it. */
export function createRpc(implementation: Implementation, guard: Guard): Rpc {
  const { method, maxRequestBytes } = implementation;
  const callers = new WeakMap<Call, Caller>();
  const identify = async (call: Call): Promise<Caller> => {
    call.log.add({ rpc: `${method.parent.typeName}/${method.name}` });
    const caller = await guard(method, (name) => call.header(name));
    call.log.add({ caller: `${caller.method}:${caller.subject}` });
    callers.set(call, caller);
    return caller;
  };
  return {
    method,
    maxRequestBytes,
    admit: (call) => reported(call, async () => void (await identify(call))),
    invoke: (request, call) =>
      reported(call, async () => answer(implementation, callers.get(call) ?? (await identify(call)), request, call)),
  };
}

async function answer(
  { method, handler }: Implementation,
  caller: Caller,
  request: Message,
  call: Call,
): Promise<Message> {
  requireValid(method.input, request);
  return create(method.output, await handler(request, { call, authority: authorityOf(caller) }));
}

async function reported<T>(call: Call, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw report(toConnectError(error), call);
  }
}

function report(error: ConnectError, { log }: Call): ConnectError {
  log.add({ code: Code[error.code] });
  if (FAULTS.has(error.code)) log.fault(error.cause ?? error);
  return error;
}

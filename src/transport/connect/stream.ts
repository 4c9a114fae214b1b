import { ConnectError, type HandlerContext } from "@connectrpc/connect";
import { toConnectError } from "../../api/errors.ts";
import type { CallLog } from "../../api/rpc.ts";
import { codeName } from "../call-metrics.ts";
import { untilDeadline } from "../deadline.ts";
import { HttpError } from "../errors/http-error.ts";
import { callOf } from "./call.ts";
import { isAsyncIterable } from "./handler.ts";
import { describeUnreadable } from "./read-errors.ts";

/** The implementation of a streaming RPC of any kind. */
export type ServeStream = (input: unknown, context: HandlerContext) => AsyncIterable<unknown> | Promise<unknown>;

/** Decorates an implementation with the error table, the log entry, and the deadline, which ends the stream whatever it does. */
export function guarded(serve: ServeStream): ServeStream {
  return (input, context) => {
    const call = callOf(context);
    call.isCalled = true;
    const { log } = call;
    const output = serve(isAsyncIterable(input) ? described(input, context) : input, context);
    if (isAsyncIterable(output)) return guardItems(output, context, log);
    return untilDeadline(() => output, context, log).catch((error) => {
      throw report(error, log);
    });
  };
}

/** Returns the requests of a stream. The error of an unreadable one quotes nothing of it, and an incomplete body is a client error. */
async function* described(requests: AsyncIterable<unknown>, context: HandlerContext): AsyncGenerator<unknown> {
  try {
    yield* requests;
  } catch (error) {
    throw error instanceof ConnectError ? describeUnreadable(error, context) : new HttpError("REQUEST_CANCELLED");
  }
}

async function* guardItems(output: AsyncIterable<unknown>, context: HandlerContext, log: CallLog) {
  const items = output[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await untilDeadline(() => items.next(), context, log);
      if (next.done === true) return;
      yield next.value;
    }
  } catch (error) {
    throw report(error, log);
  } finally {
    // Not awaited: at the deadline the implementation may still be waiting.
    void items.return?.().catch(() => undefined);
  }
}

function report(cause: unknown, log: CallLog): ConnectError {
  const error = toConnectError(cause);
  log.add({ code: codeName(error.code) });
  if (error.cause !== undefined) log.fault(error.cause);
  return error;
}

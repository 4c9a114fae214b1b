import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { toConnectError } from "../../api/errors.ts";
import { invalidArgument } from "../../domain/errors.ts";
import { timedOut } from "../wire/deadline.ts";
import { unexpectedCompression } from "../wire/grpc-frame.ts";
import { HttpError } from "../wire/http-error.ts";
import { malformed } from "../wire/protobuf.ts";
import { codeName, rpcName } from "../wire/protocol.ts";
import { callOf } from "./call.ts";

/** For Connect's option `requestGate`. The only hook before the response to an unreadable request is the signal, aborted with the error. */
export function watchReading(context: HandlerContext): void {
  const onAbort = () => {
    const { reason } = context.signal;
    if (!(reason instanceof ConnectError) || callOf(context).isCalled) return;
    if (reason.details.length === 0) {
      const { code, message, rawMessage, details } = describeUnreadable(reason, context);
      Object.assign(reason, { code, message, rawMessage, details });
    }
    callOf(context).log.add({ rpc: rpcName(context), code: codeName(reason.code) });
  };
  context.signal.addEventListener("abort", onAbort, { once: true });
}

/** After its deadline a call is already aborted, and a read error would be reported unchanged. */
export function requireTime(context: HandlerContext): void {
  if ((context.timeoutMs() ?? 1) > 0) return;
  callOf(context).log.add({ code: codeName(Code.DeadlineExceeded) });
  throw timedOut();
}

/**
 * Translates Connect's error for an unreadable request: it quotes the request, which may contain a secret, names no field, and treats
 * malformed Protobuf as an internal error. Only unary RPCs get details: the streams belong to services that others define.
 */
export function describeUnreadable(error: ConnectError, { method }: Pick<HandlerContext, "method">): ConnectError {
  const described = describe(error) ?? error;
  return method.methodKind === "unary" ? described : new ConnectError(described.rawMessage, described.code);
}

function describe({ code, rawMessage }: ConnectError): ConnectError | undefined {
  if (code === Code.Internal && rawMessage.includes("compressed")) return unexpectedCompression();
  if (rawMessage.includes("timeout value")) return toConnectError(invalidArgument("timeout", "is not well-formed"));
  switch (code) {
    case Code.Internal:
    case Code.InvalidArgument:
      return toConnectError(malformed());
    case Code.ResourceExhausted:
      return new HttpError("BODY_TOO_LARGE");
    case Code.Unimplemented:
      return rawMessage.includes("compression")
        ? new ConnectError("compressed otherwise than by gzip or br", code)
        : undefined;
    default:
      return undefined;
  }
}

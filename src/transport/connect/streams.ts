import type { DescMethod, DescMethodUnary } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type HandlerContext,
  type Interceptor,
  type MethodImpl,
} from "@connectrpc/connect";
import { toConnectError } from "../../api/errors.ts";
import type { CallLog } from "../../api/rpc.ts";
import type { Guard } from "../../auth/guard.ts";
import type { Policy } from "../../domain/admin-scopes.ts";
import { invalidArgument } from "../../domain/errors.ts";
import { iterate } from "../../lib/iterate.ts";
import { untilDeadline } from "../wire/deadline.ts";
import { unexpectedCompression } from "../wire/grpc.ts";
import { HttpError } from "../wire/http-error.ts";
import { JSON_OPTIONS } from "../wire/json/reader.ts";
import { malformed } from "../wire/protobuf.ts";
import { rpcName, toLoggedError } from "../wire/protocol.ts";
import { callKey, callOf } from "./call.ts";
import { UNKNOWN_COMPRESSION } from "./rpc.ts";

type DescMethodStreaming = Exclude<DescMethod, DescMethodUnary>;

/** A streaming RPC in Connect's form. */
export interface StreamingRpc<M extends DescMethodStreaming = DescMethodStreaming> {
  readonly method: M;
  readonly policy: Policy;
  readonly maxRequestBytes: number;
  readonly serve: MethodImpl<M>;
}

export function addStream(router: ConnectRouter, rpc: StreamingRpc, guard: Guard): void {
  const { method, maxRequestBytes: readMaxBytes, serve } = rpc;
  const name = rpcName(rpc);
  const requestGate = async (context: HandlerContext) => {
    const call = callOf(context);
    call.log.add({ rpc: name });
    try {
      await guard({ ...rpc, name }, call);
    } catch (error) {
      throw report(error, call.log);
    }
  };
  router.rpc(method, serve, { readMaxBytes, jsonOptions: JSON_OPTIONS, requestGate, interceptors: [guardStream] });
}

/** Decorates a stream with the error table, the log entry, and the deadline, which ends the stream whatever it does. */
const guardStream: Interceptor = (next) => async (request) => {
  const call = request.contextValues.get(callKey);
  if (!request.stream || call === undefined) return next(request);
  const guarded = <T>(work: () => Promise<T>) =>
    untilDeadline(work, call.context, call.log).catch((error: unknown): never => {
      throw report(error, call.log);
    });
  const response = await guarded(() => next({ ...request, message: described(request.message) }));
  return response.stream ? { ...response, message: iterate(response.message, guarded) } : response;
};

/** Yields the requests of a stream, and translates the error of one that is unreadable. */
async function* described<T>(requests: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* requests;
  } catch (error) {
    const { rawMessage, code } = describe(error);
    // Without details: these services are not ours.
    throw new ConnectError(rawMessage, code);
  }
}

/** Connect's errors quote the request, which may contain a secret, and are INTERNAL for malformed Protobuf. */
function describe(error: unknown): ConnectError {
  // An incomplete body is a client error.
  if (!(error instanceof ConnectError)) return new HttpError("REQUEST_CANCELLED");
  const { code, rawMessage } = error;
  if (rawMessage.includes("timeout value")) return toConnectError(invalidArgument("timeout", "is not well-formed"));
  if (rawMessage.includes("unknown compression")) return new ConnectError(UNKNOWN_COMPRESSION, code);
  if (code === Code.Internal && rawMessage.includes("compressed")) return unexpectedCompression();
  if (code === Code.Internal || code === Code.InvalidArgument) return toConnectError(malformed());
  if (code === Code.ResourceExhausted) return new HttpError("BODY_TOO_LARGE");
  return error;
}

export function report(cause: unknown, log: CallLog): ConnectError {
  const error = toLoggedError(cause, log);
  if (error.cause !== undefined) log.fault(error.cause);
  return error;
}

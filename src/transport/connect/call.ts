import { Code, ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { FastifyRequest } from "fastify";
import type { CallLog } from "../../api/rpc.ts";
import { codeName, type Protocol } from "../call-metrics.ts";
import { FastifyCall } from "../fastify-call.ts";

/** Context key of the Fastify request of a call. */
export const requestKey = createContextKey<FastifyRequest | undefined>(undefined);

/** By Connect's protocol names. */
const PROTOCOLS: Readonly<Record<string, Protocol>> = { grpc: "grpc", "grpc-web": "grpc_web" };

/** A call over Connect, gRPC or gRPC-Web. */
export class ConnectCall extends FastifyCall {
  readonly #context: HandlerContext;
  /** Whether Connect has read the request and called the RPC. */
  isCalled = false;

  constructor(context: HandlerContext) {
    const request = context.values.get(requestKey);
    if (request === undefined) throw new Error("a call without a Fastify request");
    super(request, PROTOCOLS[context.protocolName] ?? "connect");
    this.#context = context;
  }

  setHeader(name: string, value: string): void {
    this.#context.responseHeader.set(name, value);
  }

  setTrailer(name: string, value: string): void {
    this.#context.responseTrailer.set(name, value);
  }
}

const callKey = createContextKey<ConnectCall | undefined>(undefined);

/** Returns the call of a context, always the same object. */
export function callOf(context: HandlerContext): ConnectCall {
  const call = context.values.get(callKey) ?? new ConnectCall(context);
  context.values.set(callKey, call);
  return call;
}

/**
 * Returns the response, or at the caller's deadline (`grpc-timeout`, `connect-timeout-ms`) an error. Work in flight continues to its end:
 * the client does not know whether its change was made. Work that has not started by then does not start.
 */
export function untilDeadline<T>(
  work: () => Promise<T>,
  context: Pick<HandlerContext, "signal" | "timeoutMs">,
  log: CallLog,
): Promise<T> {
  const { signal } = context;
  if (context.timeoutMs() === undefined) return work();
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      if (!isLate(signal)) return;
      log.add({ code: codeName(Code.DeadlineExceeded) });
      reject(signal.reason);
    };
    if (isLate(signal)) return giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    const settled = () => signal.removeEventListener("abort", giveUp);
    work().finally(settled).then(resolve, reject);
  });
}

function isLate({ reason }: AbortSignal): boolean {
  return reason instanceof ConnectError && reason.code === Code.DeadlineExceeded;
}

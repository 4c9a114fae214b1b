import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { FastifyRequest } from "fastify";
import type { Call, CallLog } from "../../api/rpc.ts";
import type { Protocol } from "../calls.ts";
import { RequestLog } from "../request-log.ts";

/** Where the Fastify request of a call is found in its context. */
export const requestKey = createContextKey<FastifyRequest | undefined>(undefined);

/** No request is missing behind Fastify; a call without one has nothing to log to. */
const silent: CallLog = { add: () => {}, fault: () => {}, onEnd: () => {} };

/** By the names that Connect has for them. */
const PROTOCOLS: Readonly<Record<string, Protocol>> = { grpc: "grpc", "grpc-web": "grpc_web" };

/** The call as an RPC sees it, over Connect, gRPC and gRPC-Web. */
export class ConnectCall implements Call {
  readonly #context: HandlerContext;
  readonly log: CallLog;

  constructor(context: HandlerContext) {
    this.#context = context;
    const request = context.values.get(requestKey);
    this.log = request === undefined ? silent : new RequestLog(request, PROTOCOLS[context.protocolName] ?? "connect");
  }

  header(name: string): string | undefined {
    return this.#context.requestHeader.get(name) ?? undefined;
  }

  setHeader(name: string, value: string): void {
    this.#context.responseHeader.set(name, value);
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }
}

const callKey = createContextKey<ConnectCall | undefined>(undefined);

/** The call of a context: the same one whoever asks. */
export function callOf(context: HandlerContext): ConnectCall {
  const call = context.values.get(callKey) ?? new ConnectCall(context);
  context.values.set(callKey, call);
  return call;
}

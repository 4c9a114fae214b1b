import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { FastifyRequest } from "fastify";
import type { Call, CallLog } from "../../api/rpc.ts";
import type { Protocol } from "../calls.ts";
import { awaitWork, RequestLog } from "../request-log.ts";

/** Where the Fastify request of a call is found in its context. */
export const requestKey = createContextKey<FastifyRequest | undefined>(undefined);

/** By the names that Connect has for them. */
const PROTOCOLS: Readonly<Record<string, Protocol>> = { grpc: "grpc", "grpc-web": "grpc_web" };

/** The call as an RPC sees it, over Connect, gRPC and gRPC-Web. */
export class ConnectCall implements Call {
  readonly #context: HandlerContext;
  readonly #request: FastifyRequest;
  readonly log: CallLog;

  constructor(context: HandlerContext) {
    const request = context.values.get(requestKey);
    if (request === undefined) throw new Error("a call without a Fastify request");
    this.#context = context;
    this.#request = request;
    this.log = new RequestLog(request, PROTOCOLS[context.protocolName] ?? "connect");
  }

  /** Returns the work; the line in the log waits for it. */
  logged<T>(work: Promise<T>): Promise<T> {
    return awaitWork(this.#request, work);
  }

  header(name: string): string | undefined {
    return this.#context.requestHeader.get(name) ?? undefined;
  }

  headers(): Iterable<[name: string, value: string]> {
    return this.#context.requestHeader;
  }

  setHeader(name: string, value: string): void {
    this.#context.responseHeader.set(name, value);
  }

  setTrailer(name: string, value: string): void {
    this.#context.responseTrailer.set(name, value);
  }

  get peerAddress(): string {
    return this.#request?.socket.remoteAddress ?? "";
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

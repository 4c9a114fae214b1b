import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { FastifyRequest } from "fastify";
import { FastifyCall } from "../wire/fastify-call.ts";
import type { Protocol } from "../wire/protocol.ts";

export const requestKey = createContextKey<FastifyRequest | undefined>(undefined);

/** By Connect's protocol names. */
const PROTOCOLS: Readonly<Record<string, Protocol>> = { grpc: "grpc", "grpc-web": "grpc_web" };

/** In gRPC, details are in the trailers, in base64. grpc-java accepts 8 KiB of trailers, grpc-core and hyper 16 KiB. */
const GRPC_DETAIL_BYTES = 4096;

export class ConnectCall extends FastifyCall {
  readonly context: HandlerContext;
  /** The query of a Connect GET. */
  readonly query: URLSearchParams | undefined;

  constructor(context: HandlerContext, request: FastifyRequest) {
    super(request, PROTOCOLS[context.protocolName] ?? "connect");
    this.context = context;
    const { method, url = "" } = request.raw;
    if (method === "GET") this.query = new URL(url, "http://localhost").searchParams;
  }

  /** Also aborts when the client disconnects. */
  get deadline(): AbortSignal {
    return this.context.signal;
  }

  get maxDetailBytes(): number | undefined {
    return this.context.protocolName === "grpc" ? GRPC_DETAIL_BYTES : undefined;
  }

  override get isAbandoned(): boolean {
    return this.context.signal.aborted || super.isAbandoned;
  }

  setHeader(name: string, value: string): void {
    this.context.responseHeader.set(name, value);
  }

  setTrailer(name: string, value: string): void {
    this.context.responseTrailer.set(name, value);
  }
}

/** Context key of the call, once its protocol is known. */
export const callKey = createContextKey<ConnectCall | undefined>(undefined);

/** Returns the call of a context, always the same object. */
export function callOf(context: HandlerContext): ConnectCall {
  const existing = context.values.get(callKey);
  if (existing !== undefined) return existing;
  const request = context.values.get(requestKey);
  if (request === undefined) throw new Error("the call has no Fastify request");
  const call = new ConnectCall(context, request);
  context.values.set(callKey, call);
  return call;
}

import { setImmediate as nextTurn } from "node:timers/promises";
import type { DescMethod, DescMethodUnary, MessageShape, Registry } from "@bufbuild/protobuf";
import { type ConnectRouter, createContextValues, type HandlerContext, type MethodImpl } from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import type { FastifyInstance } from "fastify";
import { toConnectError } from "../../api/errors.ts";
import type { Rpc } from "../../api/rpc.ts";
import type { Guard } from "../../auth/guard.ts";
import type { Policy } from "../../domain/admin-scopes.ts";
import { rpcName } from "../call-metrics.ts";
import { untilDeadline } from "../deadline.ts";
import { JSON_OPTIONS } from "../json/reader.ts";
import type { ReadBody } from "../request-body.ts";
import { callOf, requestKey } from "./call.ts";
import { boundedCompressions, completeHandler, messageKey } from "./handler.ts";
import { requireTime, strictJson, watchReading } from "./read-errors.ts";
import { guarded, type ServeStream } from "./stream.ts";

type DescMethodStreaming = Exclude<DescMethod, DescMethodUnary>;

/** A streaming RPC in Connect's form. */
export interface StreamingRpc<M extends DescMethodStreaming = DescMethodStreaming> {
  readonly method: M;
  /** Its policy. */
  readonly policy: Policy;
  /** Largest request message in bytes. */
  readonly maxRequestBytes: number;
  readonly serve: MethodImpl<M>;
}

/** Registers RPCs for Connect, gRPC and gRPC-Web. `registry` has the types that `google.protobuf.Any` may contain. */
export async function registerConnect(
  fastify: FastifyInstance,
  rpcs: readonly Rpc[],
  streams: readonly StreamingRpc[],
  guard: Guard,
  registry: Registry,
  readBody: ReadBody,
): Promise<void> {
  const jsonOptions = { ...JSON_OPTIONS, registry };
  await fastify.register(fastifyConnectPlugin, {
    routes: (router) => {
      for (const stream of streams) addStream(router, stream, guard, jsonOptions);
      for (const rpc of rpcs) addRpc(router, rpc, jsonOptions);
      const unary = new Map(rpcs.map((rpc) => [rpc.method as DescMethod, { rpc, registry, readBody }]));
      const handlers = router.handlers.splice(0);
      router.handlers.push(...handlers.map((one) => completeHandler(one, unary.get(one.method))));
    },
    contextValues: (request) => createContextValues().set(requestKey, request),
  });
}

type JsonOptions = typeof JSON_OPTIONS & { readonly registry: Registry };

function addStream(router: ConnectRouter, rpc: StreamingRpc, guard: Guard, jsonOptions: JsonOptions): void {
  const { method, maxRequestBytes, serve } = rpc;
  const requestGate = async (context: HandlerContext) => {
    watchReading(context);
    const call = callOf(context);
    call.log.add({ rpc: rpcName(rpc) });
    try {
      await guard(rpc, call);
    } catch (error) {
      throw toConnectError(error);
    }
  };
  router.rpc(method, guarded(serve as ServeStream) as typeof serve, {
    readMaxBytes: maxRequestBytes,
    jsonOptions: strictJson(method.input, maxRequestBytes, jsonOptions),
    requestGate,
  });
}

function addRpc(router: ConnectRouter, rpc: Rpc, jsonOptions: JsonOptions): void {
  router.rpc(rpc.method, implementationOf(rpc), {
    readMaxBytes: rpc.maxRequestBytes,
    jsonOptions: strictJson(rpc.method.input, rpc.maxRequestBytes, jsonOptions),
    requestGate: async (context) => {
      watchReading(context);
      await rpc.admit(callOf(context));
      requireTime(context);
    },
    acceptCompression: rpc.acceptsCompression === false ? [] : boundedCompressions(rpc),
  });
}

function implementationOf(rpc: Rpc): MethodImpl<DescMethodUnary> {
  return async (decoded: MessageShape<typeof rpc.method.input>, context) => {
    const request = context.values.get(messageKey) ?? decoded;
    const call = callOf(context);
    call.isCalled = true;
    // Authorized again: the caller may have been revoked while the body was in transit.
    const serve = async () => {
      const principal = await rpc.admit(call);
      // Connect decodes a request, and encodes a response, in one tick: a long one gets a tick of its own.
      if (isLong(request)) await nextTurn();
      const response = await rpc.invoke(request, principal, call);
      if (isLong(response)) await nextTurn();
      return response;
    };
    return untilDeadline(() => call.logged(serve()), context, call.log);
  };
}

/** Number of list items from which a message is long. */
const LONG_LIST = 100;

function isLong(message: object): boolean {
  return Object.values(message).some((value) => Array.isArray(value) && value.length >= LONG_LIST);
}

import type {
  DescMethodBiDiStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageShape,
} from "@bufbuild/protobuf";
import {
  type ConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type MethodImpl,
} from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import type { FastifyInstance } from "fastify";
import { toConnectError } from "../../api/errors.ts";
import type { AdmittedCall, Rpc } from "../../api/rpc.ts";
import type { Guard } from "../../auth/guard.ts";
import { JSON_OPTIONS } from "../json-options.ts";
import { callOf, requestKey } from "./call.ts";
import { untilDeadline } from "./deadline.ts";
import { boundedCompressions, withFieldBound } from "./field-bound.ts";
import { withCare } from "./handler.ts";
import { calledKey, strictJson, watchReading, withErrorBody } from "./refusal.ts";

type DescMethodStreaming = DescMethodServerStreaming | DescMethodBiDiStreaming;

/** A streaming RPC beside the unary ones, as Connect takes it. */
export interface StreamingRpc<M extends DescMethodStreaming = DescMethodStreaming> {
  readonly method: M;
  /** Largest request message in bytes. */
  readonly maxRequestBytes: number;
  readonly serve: MethodImpl<M>;
}

/** Serves RPCs over Connect, gRPC and gRPC-Web. */
export async function registerConnect(
  fastify: FastifyInstance,
  rpcs: readonly Rpc[],
  streams: readonly StreamingRpc[],
  guard: Guard,
): Promise<void> {
  await fastify.register(fastifyConnectPlugin, {
    routes: (router) => {
      for (const stream of streams) addStream(router, stream, guard);
      for (const rpc of rpcs) addRpc(router, rpc);
      const bounded = router.handlers.splice(0).map((handler) => withFieldBound(handler, rpcs));
      router.handlers.push(...bounded.map(withErrorBody).map(withCare));
    },
    contextValues: (request) => createContextValues().set(requestKey, request),
    requestGate: watchReading,
  });
}

function addStream(router: ConnectRouter, { method, maxRequestBytes, serve }: StreamingRpc, guard: Guard): void {
  const requestGate = async (context: HandlerContext) => {
    watchReading(context);
    const call = callOf(context);
    call.log.add({ rpc: `${method.parent.typeName}/${method.name}` });
    try {
      await guard(method, (name) => call.header(name));
    } catch (error) {
      throw toConnectError(error);
    }
  };
  router.rpc(method, serve, {
    readMaxBytes: maxRequestBytes,
    jsonOptions: strictJson(method.input, JSON_OPTIONS),
    requestGate,
  });
}

function addRpc(router: ConnectRouter, rpc: Rpc): void {
  router.rpc(rpc.method, implementationOf(rpc), {
    readMaxBytes: rpc.maxRequestBytes,
    jsonOptions: strictJson(rpc.method.input, JSON_OPTIONS),
    requestGate: gateOf(rpc),
    acceptCompression: boundedCompressions(rpc),
  });
}

const admissionKey = createContextKey<AdmittedCall | undefined>(undefined);

function gateOf(rpc: Rpc) {
  return async (context: HandlerContext): Promise<void> => {
    watchReading(context);
    context.values.set(admissionKey, await rpc.admit(callOf(context)));
  };
}

function implementationOf(rpc: Rpc): MethodImpl<DescMethodUnary> {
  return async (request: MessageShape<typeof rpc.method.input>, context) => {
    context.values.set(calledKey, true);
    const call = callOf(context);
    const admission = context.values.get(admissionKey) ?? (await rpc.admit(call));
    return untilDeadline(async () => rpc.invoke(request, admission), context, call.log);
  };
}

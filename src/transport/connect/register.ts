import type { DescMethodServerStreaming, DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import { type ConnectRouter, createContextValues, type HandlerContext, type MethodImpl } from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import type { FastifyInstance } from "fastify";
import type { Rpc } from "../../api/rpc.ts";
import { RECURSION_LIMIT } from "../rest/request-decoder.ts";
import { callOf, requestKey } from "./call.ts";
import { untilDeadline } from "./deadline.ts";
import { withCare } from "./handler.ts";
import { calledKey, strictJson, watchReading, withErrorBody } from "./refusal.ts";

/** A server-streaming RPC beside the unary ones, as Connect takes it. */
export interface StreamingRpc<M extends DescMethodServerStreaming = DescMethodServerStreaming> {
  readonly method: M;
  /** Largest request message in bytes. */
  readonly maxRequestBytes: number;
  readonly serve: MethodImpl<M>;
}

/** The form of JSON on the REST paths too (contract §2). */
const JSON_OPTIONS = {
  useProtoFieldName: true,
  alwaysEmitImplicit: true,
  ignoreUnknownFields: false,
  recursionLimit: RECURSION_LIMIT,
};

/** Serves RPCs over Connect, gRPC and gRPC-Web. */
export async function registerConnect(
  fastify: FastifyInstance,
  rpcs: readonly Rpc[],
  streams: readonly StreamingRpc[],
): Promise<void> {
  await fastify.register(fastifyConnectPlugin, {
    routes: (router) => {
      addRpcs(router, rpcs, streams);
      router.handlers.push(...router.handlers.splice(0).map(withErrorBody).map(withCare));
    },
    contextValues: (request) => createContextValues().set(requestKey, request),
    requestGate: watchReading,
  });
}

function addRpcs(router: ConnectRouter, rpcs: readonly Rpc[], streams: readonly StreamingRpc[]): void {
  for (const { method, maxRequestBytes: readMaxBytes, serve } of streams) {
    router.rpc(method, serve, { readMaxBytes, jsonOptions: strictJson(method.input, JSON_OPTIONS) });
  }
  for (const rpc of rpcs) {
    const serve: MethodImpl<DescMethodUnary> = (request: MessageShape<typeof rpc.method.input>, context) => {
      context.values.set(calledKey, true);
      const call = callOf(context);
      return untilDeadline(rpc.invoke(request, call), context, call.log);
    };
    const requestGate = (context: HandlerContext) => {
      watchReading(context);
      return rpc.admit(callOf(context));
    };
    const jsonOptions = strictJson(rpc.method.input, JSON_OPTIONS);
    router.rpc(rpc.method, serve, { readMaxBytes: rpc.maxRequestBytes, jsonOptions, requestGate });
  }
}

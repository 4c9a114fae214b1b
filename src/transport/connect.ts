import type { DescMethodServerStreaming, DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import { type ConnectRouter, createContextValues, type MethodImpl } from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import type { FastifyInstance } from "fastify";
import type { Rpc } from "../api/rpc.ts";
import { ConnectCall, requestKey } from "./connect-call.ts";

/** A server-streaming RPC beside the unary ones, as Connect takes it. */
export interface StreamingRpc<M extends DescMethodServerStreaming = DescMethodServerStreaming> {
  readonly method: M;
  readonly serve: MethodImpl<M>;
}

/** The form of JSON on the REST paths too (contract §2). */
const JSON_OPTIONS = { useProtoFieldName: true, alwaysEmitImplicit: true, ignoreUnknownFields: false };

export interface ConnectOptions {
  /** Ends the streams that are still open. */
  readonly shutdownSignal: AbortSignal;
}

/** Serves RPCs over Connect, gRPC and gRPC-Web. */
export async function registerConnect(
  fastify: FastifyInstance,
  rpcs: readonly Rpc[],
  streams: readonly StreamingRpc[],
  { shutdownSignal }: ConnectOptions,
): Promise<void> {
  await fastify.register(fastifyConnectPlugin, {
    routes: (router) => addRpcs(router, rpcs, streams),
    contextValues: (request) => createContextValues().set(requestKey, request),
    jsonOptions: JSON_OPTIONS,
    shutdownSignal,
  });
}

function addRpcs(router: ConnectRouter, rpcs: readonly Rpc[], streams: readonly StreamingRpc[]): void {
  for (const { method, serve } of streams) router.rpc(method, serve);
  for (const rpc of rpcs) {
    const serve: MethodImpl<DescMethodUnary> = (request: MessageShape<typeof rpc.method.input>, context) =>
      rpc.invoke(request, new ConnectCall(context));
    router.rpc(rpc.method, serve, { readMaxBytes: rpc.maxRequestBytes });
  }
}

import type { Registry } from "@bufbuild/protobuf";
import { createContextValues } from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import type { FastifyInstance } from "fastify";
import type { Rpc } from "../../api/rpc.ts";
import type { Guard } from "../../auth/guard.ts";
import { JSON_OPTIONS } from "../wire/json/reader.ts";
import type { ReadBody } from "../wire/request-body.ts";
import { requestKey } from "./call.ts";
import { completeHandler } from "./handler.ts";
import { addStream, type StreamingRpc } from "./streams.ts";
import { addUnary } from "./unary.ts";

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
      for (const rpc of rpcs) addUnary(router, rpc, readBody, jsonOptions);
      router.handlers.push(...router.handlers.splice(0).map(completeHandler));
    },
    contextValues: (request) => createContextValues().set(requestKey, request),
  });
}

import type { DescMethod, DescMethodUnary, Registry } from "@bufbuild/protobuf";
import {
  ConnectError,
  type ConnectRouter,
  createContextValues,
  type HandlerContext,
  type MethodImpl,
} from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import type { FastifyInstance } from "fastify";
import { toConnectError } from "../../api/errors.ts";
import type { CallLog, Rpc } from "../../api/rpc.ts";
import type { Guard } from "../../auth/guard.ts";
import type { Policy } from "../../domain/admin-scopes.ts";
import { untilDeadline } from "../wire/deadline.ts";
import { HttpError } from "../wire/http-error.ts";
import { JSON_OPTIONS } from "../wire/json/reader.ts";
import { yieldIfLong } from "../wire/long-message.ts";
import { codeName, rpcName } from "../wire/protocol.ts";
import type { ReadBody } from "../wire/request-body.ts";
import { callOf, requestKey } from "./call.ts";
import { completeHandler, isAsyncIterable } from "./handler.ts";
import { describeUnreadable, requireTime, watchReading } from "./read-errors.ts";
import { ACCEPTED_COMPRESSIONS, receivedDecoder, receivedKey } from "./request-message.ts";

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
      const unary = new Map(rpcs.map((rpc) => [rpc.method as DescMethod, { rpc, readBody }]));
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
    jsonOptions,
    requestGate,
  });
}

/** The implementation of a streaming RPC of any kind. */
type ServeStream = (input: unknown, context: HandlerContext) => AsyncIterable<unknown> | Promise<unknown>;

/** Decorates an implementation with the error table, the log entry, and the deadline, which ends the stream whatever it does. */
function guarded(serve: ServeStream): ServeStream {
  return (input, context) => {
    const call = callOf(context);
    call.isCalled = true;
    const { log } = call;
    const output = serve(isAsyncIterable(input) ? described(input, context) : input, context);
    if (isAsyncIterable(output)) return guardItems(output, context, log);
    return untilDeadline(() => output, context, log).catch((error) => {
      throw report(error, log);
    });
  };
}

/** Returns the requests of a stream. The error of an unreadable one quotes nothing of it, and an incomplete body is a client error. */
async function* described(requests: AsyncIterable<unknown>, context: HandlerContext): AsyncGenerator<unknown> {
  try {
    yield* requests;
  } catch (error) {
    throw error instanceof ConnectError ? describeUnreadable(error, context) : new HttpError("REQUEST_CANCELLED");
  }
}

async function* guardItems(output: AsyncIterable<unknown>, context: HandlerContext, log: CallLog) {
  const items = output[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await untilDeadline(() => items.next(), context, log);
      if (next.done === true) return;
      yield next.value;
    }
  } catch (error) {
    throw report(error, log);
  } finally {
    // Not awaited: at the deadline the implementation may still be waiting.
    void items.return?.().catch(() => undefined);
  }
}

function report(cause: unknown, log: CallLog): ConnectError {
  const error = toConnectError(cause);
  log.add({ code: codeName(error.code) });
  if (error.cause !== undefined) log.fault(error.cause);
  return error;
}

function addRpc(router: ConnectRouter, rpc: Rpc, jsonOptions: JsonOptions): void {
  router.rpc(rpc.method, implementationOf(rpc, jsonOptions.registry), {
    readMaxBytes: rpc.maxRequestBytes,
    jsonOptions,
    requestGate: async (context) => {
      watchReading(context);
      await rpc.admit(callOf(context));
      requireTime(context);
    },
    acceptCompression: rpc.acceptsCompression === false ? [] : ACCEPTED_COMPRESSIONS,
  });
}

function implementationOf(rpc: Rpc, registry: Registry): MethodImpl<DescMethodUnary> {
  const decode = receivedDecoder(rpc, registry);
  return async (_, context) => {
    const call = callOf(context);
    // Authorized again: the caller may have been revoked while the body was in transit.
    const serve = async () => {
      const principal = await rpc.admit(call);
      const request = await decode(context.values.get(receivedKey), call).catch((error) => {
        throw toConnectError(error);
      });
      call.isCalled = true;
      // A long message is decoded, processed and encoded in a tick each.
      await yieldIfLong(request);
      const response = await rpc.invoke(request, principal, call);
      await yieldIfLong(response);
      return response;
    };
    return untilDeadline(() => call.logged(serve()), context, call.log);
  };
}

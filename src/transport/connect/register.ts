import { type ConnectRouter, createContextValues } from "@connectrpc/connect";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Rpc, StreamRpc } from "../../api/rpc.ts";
import type { Guard } from "../../auth/guard.ts";
import { boundDeadlines } from "../wire/deadline.ts";
import { renderError } from "../wire/error-handler.ts";
import { unescapeMessage } from "../wire/grpc.ts";
import { HttpError, type HttpErrorReason, methodNotAllowed } from "../wire/http-error.ts";
import type { ReadBody } from "../wire/request-body.ts";
import { requestKey } from "./call.ts";
import { addRpc, isFramed, withoutMessage } from "./rpc.ts";
import { addStream, type StreamingRpc } from "./streams.ts";

/** Serves RPCs by Connect, and those of `handlers` by handlers of their own. */
export async function registerConnect(
  fastify: FastifyInstance,
  rpcs: readonly (Rpc | StreamRpc)[],
  streams: readonly StreamingRpc[],
  guard: Guard,
  readBody: ReadBody,
  handlers: readonly Handler[],
): Promise<void> {
  await fastify.register(fastifyConnectPlugin, {
    routes: (router) => {
      for (const stream of streams) addStream(router, stream, guard);
      const ofStreams = [...router.handlers.splice(0), ...handlers].map((handler) => completeHandler(handler, false));
      for (const rpc of rpcs) addRpc(router, rpc, readBody);
      const ofRpcs = router.handlers.splice(0).map((handler) => completeHandler(handler, true));
      router.handlers.push(...ofStreams, ...ofRpcs);
    },
    contextValues: (request) => createContextValues().set(requestKey, request),
  });
}

/** Connect's handler of an RPC, for every protocol and HTTP server. */
export type Handler = ConnectRouter["handlers"][number];

/**
 * Decorates Connect's handler: unread bytes of the body are drained so that the connection can serve the next request, deadlines may be of
 * any length, and every error has our form. An RPC that `readsMessage` itself gets an empty one from Connect.
 */
function completeHandler(handler: Handler, readsMessage: boolean): Handler {
  const isUnary = handler.method.methodKind === "unary";
  const serve = async (request: Parameters<Handler>[0]): ReturnType<Handler> => {
    const incoming = request.contextValues?.get(requestKey);
    if (incoming === undefined) return handler(request);
    const { raw } = incoming;
    // Node's headers are plain objects; reading Connect's `Headers` takes many times as long.
    const { "content-type": type = "" } = raw.headers;
    boundDeadlines(raw.headers, request.header);
    // An RPC that stops reading must not destroy the connection.
    const withBody = () => ({ ...request, body: raw.iterator({ destroyOnReturn: false }) });
    const received = readsMessage ? withoutMessage(request, type) : withBody();
    const response = withError(await handler(received), incoming, handler.allowedMethods);
    if (request.method === "GET" && response.header?.has("cache-control") === false) {
      response.header.set("cache-control", "no-store");
    }
    const finish = () => {
      raw.resume();
      if (response.trailer !== undefined) unescapeMessage(response.trailer);
    };
    // The request of a stream is read while the response is written, and trailers are complete when the response is.
    if (response.body !== undefined && (!isUnary || isFramed(type)))
      return { ...response, body: followedBy(response.body, finish) };
    finish();
    return response;
  };
  return Object.assign(serve, handler);
}

/** Reasons of the responses that Connect sends without a body. */
const BODILESS: ReadonlyMap<number, HttpErrorReason> = new Map([
  [405, "METHOD_NOT_ALLOWED"],
  [415, "MEDIA_TYPE_NOT_SUPPORTED"],
  [505, "HTTP_VERSION_NOT_SUPPORTED"],
]);

type Response = Awaited<ReturnType<Handler>>;

/** Returns the response, or, for a rejection without a body, the error of the protocol of its request. */
function withError(response: Response, request: FastifyRequest, allowedMethods: readonly string[]): Response {
  const reason = response.body === undefined ? BODILESS.get(response.status) : undefined;
  if (reason === undefined) return response;
  const error = reason === "METHOD_NOT_ALLOWED" ? methodNotAllowed(allowedMethods) : new HttpError(reason);
  const { code: status, headers, trailers, body } = renderError(error, request);
  // Not as headers: Connect's adapter would send an empty DATA frame after them, and gRPC clients would miss the status.
  const trailer = trailers && new Headers(trailers);
  const content = body === undefined ? undefined : createAsyncIterable([Buffer.from(body)]);
  return { status, header: new Headers(headers), trailer, body: content };
}

/** Yields the items and then calls `finish`, however they end. */
async function* followedBy<T>(items: AsyncIterable<T>, finish: () => void): AsyncGenerator<T> {
  try {
    yield* items;
  } finally {
    finish();
  }
}

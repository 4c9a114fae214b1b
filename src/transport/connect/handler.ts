import type { ConnectRouter } from "@connectrpc/connect";
import { assertByteStreamRequest, createAsyncIterable } from "@connectrpc/connect/protocol";
import type { FastifyRequest } from "fastify";
import { boundDeadlines } from "../wire/deadline.ts";
import { renderError } from "../wire/error-handler.ts";
import { unescapeMessage } from "../wire/grpc-error.ts";
import { HttpError, type HttpErrorReason } from "../wire/http-error.ts";
import { requestKey } from "./call.ts";
import { isFramed, withoutMessage } from "./unary.ts";

/** Connect's handler of an RPC, for every protocol and HTTP server. */
type Handler = ConnectRouter["handlers"][number];

type Bytes = AsyncIterable<Uint8Array>;

/**
 * Decorates Connect's handler: unread bytes of the body are drained so that the connection can serve the next request, deadlines may be of
 * any length, and every error has our form.
 */
export function completeHandler(handler: Handler): Handler {
  const isUnary = handler.method.methodKind === "unary";
  const serve = async (request: Parameters<Handler>[0]): ReturnType<Handler> => {
    const incoming = request.contextValues?.get(requestKey);
    if (incoming === undefined) return handler(request);
    assertByteStreamRequest(request);
    const { raw } = incoming;
    // Node's headers are plain objects; reading Connect's `Headers` takes many times as long.
    const { "content-type": type = "" } = raw.headers;
    boundDeadlines(raw.headers, request.header);
    const received = isUnary ? withoutMessage(request, type) : { ...request, body: drained(request.body) };
    const response = withError(await handler(received), incoming, handler.allowedMethods);
    if (request.method === "GET" && response.header?.has("cache-control") === false) {
      response.header.set("cache-control", "no-store");
    }
    const finish = () => {
      if (isUnary) raw.resume();
      if (response.trailer !== undefined) unescapeMessage(response.trailer);
    };
    // With framed messages, the request is read when the response is, and the trailers are complete when the body is.
    if (response.body !== undefined && isFramed(type)) return { ...response, body: followedBy(response.body, finish) };
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
  const allow = reason === "METHOD_NOT_ALLOWED" ? { allow: allowedMethods.join(", ") } : undefined;
  const { code: status, headers, trailers, body } = renderError(new HttpError(reason, allow), request);
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

/** Returns a body that is drained when the handler of a stream stops reading: unread bytes would block the connection. */
function drained(body: Bytes): Bytes {
  return {
    [Symbol.asyncIterator]: () => {
      const iterator = body[Symbol.asyncIterator]();
      const stop = async () => {
        void drain(iterator);
        return { done: true, value: undefined } as const;
      };
      return { next: () => iterator.next(), return: stop };
    },
  };
}

async function drain(iterator: AsyncIterator<Uint8Array>): Promise<void> {
  try {
    while (!(await iterator.next()).done);
  } catch {
    // The client disconnected.
  }
}

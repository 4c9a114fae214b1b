import type { ConnectRouter } from "@connectrpc/connect";
import { isStream } from "./field-bound.ts";
import { unescapeMessage } from "./grpc-message.ts";

type Handler = ConnectRouter["handlers"][number];
type Serve = (...request: Parameters<Handler>) => ReturnType<Handler>;
type ResponseOf = Awaited<ReturnType<Handler>>;
type Bytes = AsyncIterable<Uint8Array>;

/** A handler of Connect that leaves its connection fit for the next request, and messages of gRPC fit to be read. */
export function withCare(handler: Handler): Handler {
  const serve: Serve = async (request) => {
    const { body } = request;
    const response = await handler(isStream(body) ? { ...request, body: readToTheEnd(body) } : request);
    if (request.method === "GET" && response.header?.has("cache-control") === false) {
      response.header.set("cache-control", "no-store");
    }
    return withPlainMessage(response);
  };
  const { service, method, requestPath, supportedContentType, protocolNames, allowedMethods } = handler;
  return Object.assign(serve, { service, method, requestPath, supportedContentType, protocolNames, allowedMethods });
}

/**
 * A handler that refuses a request leaves off in the middle of its body, and Node then destroys the request but not the
 * connection: what is left would stand in the way of the next request for good. It is read, and dropped.
 */
function readToTheEnd(body: Bytes): Bytes {
  return {
    [Symbol.asyncIterator]: () => {
      const iterator = body[Symbol.asyncIterator]();
      const leaveOff = async () => {
        void drop(iterator);
        return { done: true, value: undefined } as const;
      };
      return { next: () => iterator.next(), return: leaveOff };
    },
  };
}

async function drop(iterator: AsyncIterator<Uint8Array>): Promise<void> {
  try {
    while (!(await iterator.next()).done);
  } catch {
    // The caller went away.
  }
}

/** The trailers of gRPC are complete when the body is. */
function withPlainMessage(response: ResponseOf): ResponseOf {
  const { body, trailer } = response;
  if (body === undefined || trailer === undefined) return response;
  return { ...response, body: followedBy(body, () => unescapeMessage(trailer)) };
}

async function* followedBy<T>(items: AsyncIterable<T>, finish: () => void): AsyncGenerator<T> {
  yield* items;
  finish();
}

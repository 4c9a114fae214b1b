import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Message, Registry } from "@bufbuild/protobuf";
import { type ConnectRouter, type ContextValues, createContextKey } from "@connectrpc/connect";
import { type Compression, compressedFlag, createAsyncIterable, encodeEnvelope } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import type { FastifyRequest } from "fastify";
import { toConnectError } from "../../api/errors.ts";
import type { Rpc } from "../../api/rpc.ts";
import { HEAD_BYTES, isOneFrame } from "../fast-path/protocols.ts";
import { boundDeadlines } from "../wire/deadline.ts";
import { renderError } from "../wire/error-handler.ts";
import { fieldBound } from "../wire/field-count.ts";
import { unescapeMessage } from "../wire/grpc-error.ts";
import { HttpError, type HttpErrorReason } from "../wire/http-error.ts";
import { LONG, readJsonOfAnyLength } from "../wire/json/reader.ts";
import { valueLimits } from "../wire/json/scan.ts";
import type { ReadBody } from "../wire/request-body.ts";
import { callKey, requestKey } from "./call.ts";

/** Connect's handler of an RPC, for every protocol and HTTP server. */
type Handler = ConnectRouter["handlers"][number];

type Bytes = AsyncIterable<Uint8Array>;

/**
 * Decorates Connect's handler: the body of a unary RPC is read completely or not at all, unread bytes are drained so that the connection
 * can serve the next request, deadlines may be of any length, and every error has our form. `reading` is undefined for a stream.
 */
export function completeHandler(handler: Handler, reading: UnaryReading | undefined): Handler {
  const wholeBody = reading && wholeBodyReader(reading);
  const serve = async (request: Parameters<Handler>[0]): ReturnType<Handler> => {
    const { body } = request;
    const values = request.contextValues;
    const incoming = values?.get(requestKey);
    if (values === undefined || incoming === undefined || !isAsyncIterable<Uint8Array>(body)) return handler(request);
    const { raw } = incoming;
    // Node's headers are plain objects; reading Connect's `Headers` takes many times as long.
    const { "content-type": type = "" } = raw.headers;
    boundDeadlines(raw.headers, request.header);
    // Connect would compare it with the bytes that it receives, which differ; the reader of the body has its own limit.
    if (wholeBody !== undefined && isJson(type)) request.header.delete("content-length");
    const received = wholeBody?.(raw, type, values) ?? drained(body);
    const response = withError(await handler({ ...request, body: received }), incoming, handler.allowedMethods);
    if (request.method === "GET" && response.header?.has("cache-control") === false) {
      response.header.set("cache-control", "no-store");
    }
    const finish = () => {
      if (reading !== undefined) raw.resume();
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

/** Returns the response, or, for a refusal without a body, the error of the protocol of its request. */
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

/** Options for reading the requests of a unary RPC. */
export interface UnaryReading {
  readonly rpc: Rpc;
  /** The types that `google.protobuf.Any` may contain. */
  readonly registry: Registry;
  readonly readBody: ReadBody;
}

/**
 * Context key of the message of a JSON request. It is read like on the REST paths, with the same rules and errors, and in several ticks
 * if it is long. Compressed JSON is read through Connect (`strictJson`).
 */
export const messageKey = createContextKey<Message | undefined>(undefined);

/** The placeholders that Connect reads instead. */
const EMPTY = new Uint8Array();
const EMPTY_JSON = Buffer.from("{}");

/** Returns an iterable with the complete body as one item, or none if it is empty. Reads nothing before the first item is requested. */
function wholeBodyReader({ rpc, registry, readBody }: UnaryReading) {
  const check = checkOf(rpc);
  const limits = valueLimits(rpc.maxRequestBytes);
  const read = async (raw: IncomingMessage, type: string, values: ContextValues): Promise<Uint8Array> => {
    const head = isFramed(type) ? HEAD_BYTES : 0;
    const bytes = await readBody(raw, rpc.maxRequestBytes + head);
    const message = bytes.subarray(head);
    const { "content-encoding": encoding = "identity" } = raw.headers;
    const isCompressed = head > 0 ? ((bytes[0] ?? 0) & compressedFlag) !== 0 : encoding !== "identity";
    if (isCompressed) return bytes;
    const call = values.get(callKey);
    if (!isJson(type) && rpc.readBinary !== undefined && call !== undefined && (head === 0 || isOneFrame(bytes))) {
      rpc.readBinary(message, call);
      return head > 0 ? encodeEnvelope(0, EMPTY) : EMPTY;
    }
    if (!isJson(type)) await check(message);
    // Connect rejects incomplete frames.
    else if (message.length > 0 && (head === 0 || isOneFrame(bytes))) {
      values.set(messageKey, await readJsonOfAnyLength(rpc.method.input, message, limits, registry));
      return head > 0 ? encodeEnvelope(0, EMPTY_JSON) : EMPTY_JSON;
    }
    return bytes;
  };
  return async function* (...request: Parameters<typeof read>) {
    const bytes = await read(...request).catch((error) => {
      throw toConnectError(error);
    });
    if (bytes.length > 0) yield bytes;
  };
}

function isJson(type: string): boolean {
  return type.includes("json");
}

/** Determined by the content type: Connect frames messages only in streams. */
function isFramed(type: string): boolean {
  return type.includes("grpc");
}

/** Creates the check of a message before it is decoded. Throws the error for the client. */
function checkOf({ method, maxRequestBytes }: Rpc): (message: Uint8Array) => Promise<void> | void {
  const requireFewFields = fieldBound(method.input, maxRequestBytes);
  return (message) => {
    requireFewFields(message);
    // A long message is checked in one tick and decoded in another.
    return message.length < LONG ? undefined : nextTurn();
  };
}

/** Maximum expansion of compressed bodies, from 256 KiB on. JSON of a thousand similar keys expands 30 times. */
const MAX_RATIO = 100;
const MIN_BOUND = 262_144;

/** The compressions that an RPC accepts. Their output is bounded and checked before it is decoded. */
export function boundedCompressions(rpc: Rpc): Compression[] {
  const check = checkOf(rpc);
  return [compressionGzip, compressionBrotli].map((compression) => ({
    ...compression,
    decompress: async (bytes, maxBytes) => {
      const bound = Math.max(MIN_BOUND, bytes.length * MAX_RATIO);
      const message = await compression.decompress(bytes, Math.min(maxBytes, bound));
      // JSON passes: it has its own limit.
      await check(message);
      return message;
    },
  }));
}

export function isAsyncIterable<T>(value: unknown): value is AsyncIterable<T> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
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

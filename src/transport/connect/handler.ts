import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Message, Registry } from "@bufbuild/protobuf";
import { type ConnectRouter, type ContextValues, createContextKey } from "@connectrpc/connect";
import { type Compression, compressedFlag, createAsyncIterable } from "@connectrpc/connect/protocol";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { toConnectError } from "../../api/errors.ts";
import type { Rpc } from "../../api/rpc.ts";
import { errorResponse } from "../errors/error-body.ts";
import { HttpError, type HttpErrorReason } from "../errors/http-error.ts";
import { HEAD_BYTES, isOneFrame, toFrame } from "../fast-path/protocols.ts";
import { fieldBound } from "../field-count.ts";
import { LONG, readJsonOfAnyLength } from "../json/reader.ts";
import { valueLimits } from "../json/scan.ts";
import type { ReadBody } from "../request-body.ts";
import { requestKey } from "./call.ts";
import { unescapeMessage } from "./grpc-error.ts";

/** Connect's handler of an RPC, for every protocol and every HTTP server. */
type Handler = ConnectRouter["handlers"][number];

type Bytes = AsyncIterable<Uint8Array>;

/**
 * Returns Connect's handler with what it lacks: a unary RPC's body is read as a whole or not at all, what a handler leaves unread is
 * dropped, so that the connection can take the next request, deadlines may be of any length, and every error has our form.
 * `reading` is undefined for a stream.
 */
export function completeHandler(handler: Handler, reading: UnaryReading | undefined): Handler {
  const wholeBody = reading && wholeBodyReader(reading);
  const serve = async (request: Parameters<Handler>[0]): ReturnType<Handler> => {
    const { body } = request;
    const values = request.contextValues;
    const raw = values?.get(requestKey)?.raw;
    if (values === undefined || raw === undefined || !isAsyncIterable<Uint8Array>(body)) return handler(request);
    // The headers of Node are plain objects; to look into the `Headers` of Connect takes many times as long.
    const { "content-type": type = "" } = raw.headers;
    boundDeadlines(raw.headers, request.header);
    // Connect compares it with the bytes that it gets, which are others then; the reader of the body has a limit of its own.
    if (wholeBody !== undefined && isJson(type)) request.header.delete("content-length");
    const received = wholeBody?.(raw, type, values) ?? drained(body);
    const response = withErrorBody(await handler({ ...request, body: received }), handler.allowedMethods);
    if (request.method === "GET" && response.header?.has("cache-control") === false) {
      response.header.set("cache-control", "no-store");
    }
    const finish = () => {
      if (reading !== undefined) raw.resume();
      if (response.trailer !== undefined) unescapeMessage(response.trailer);
    };
    // Where messages are framed, the request is read when the response is, and the trailers are complete when the body is.
    if (response.body !== undefined && isFramed(type)) return { ...response, body: followedBy(response.body, finish) };
    finish();
    return response;
  };
  return Object.assign(serve, handler);
}

/** The longest that Node's timers wait: a longer one fires after 1 ms. Connect gives a deadline to a timer as it is. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The headers of deadlines with the longest that each may say within that. */
const DEADLINES = [
  { name: "grpc-timeout", parse: parseGrpcTimeout, longest: `${Math.floor(MAX_TIMER_MS / 1000)}S` },
  { name: "connect-timeout-ms", parse: parseConnectTimeout, longest: `${MAX_TIMER_MS}` },
] as const;

function boundDeadlines(given: IncomingHttpHeaders, header: Headers): void {
  for (const { name, parse, longest } of DEADLINES) {
    if (given[name] === undefined) continue;
    const { timeoutMs = 0 } = parse(header.get(name), MAX_TIMER_MS);
    if (timeoutMs > MAX_TIMER_MS) header.set(name, longest);
  }
}

/** The reasons of the answers that Connect gives without a body. */
const BODILESS: ReadonlyMap<number, HttpErrorReason> = new Map([
  [405, "METHOD_NOT_ALLOWED"],
  [415, "MEDIA_TYPE_NOT_SUPPORTED"],
  [505, "HTTP_VERSION_NOT_SUPPORTED"],
]);

type Response = Awaited<ReturnType<Handler>>;

function withErrorBody(response: Response, allowedMethods: readonly string[]): Response {
  const reason = response.body === undefined ? BODILESS.get(response.status) : undefined;
  if (reason === undefined) return response;
  const allow = reason === "METHOD_NOT_ALLOWED" ? { allow: allowedMethods.join(", ") } : undefined;
  const { headers, body } = errorResponse(new HttpError(reason, allow));
  return { ...response, header: new Headers(headers), body: createAsyncIterable([Buffer.from(body)]) };
}

/** The items, and then `finish`, however they end. */
async function* followedBy<T>(items: AsyncIterable<T>, finish: () => void): AsyncGenerator<T> {
  try {
    yield* items;
  } finally {
    finish();
  }
}

/** How the requests of a unary RPC are read. */
export interface UnaryReading {
  readonly rpc: Rpc;
  /** The types that `google.protobuf.Any` may hold. */
  readonly registry: Registry;
  readonly readBody: ReadBody;
}

/**
 * Where the message of a request in JSON is found: it is read as on the REST paths, by the same rules and with the same errors, and if it is
 * long in several turns of the event loop. Compressed JSON is read by Connect (`strictJson`).
 */
export const messageKey = createContextKey<Message | undefined>(undefined);

/** What Connect is given to read in its place. */
const EMPTY_JSON = Buffer.from("{}");

type ReadWhole = (raw: IncomingMessage, type: string, values: ContextValues) => Bytes;

/** Returns what gives the whole body as one item, or none if it is empty. Nothing is read before the first item is asked for. */
function wholeBodyReader({ rpc, registry, readBody }: UnaryReading): ReadWhole {
  const check = checkOf(rpc);
  const limits = valueLimits(rpc.maxRequestBytes);
  return async function* (raw, type, values) {
    const head = isFramed(type) ? HEAD_BYTES : 0;
    const bytes = await readBody(raw, rpc.maxRequestBytes + head).catch((error) => {
      throw toConnectError(error);
    });
    const message = bytes.subarray(head);
    const isCompressed = head > 0 ? ((bytes[0] ?? 0) & compressedFlag) !== 0 : !isPlain(raw);
    if (!isCompressed && !isJson(type)) await check(message);
    // Connect refuses frames that are not whole.
    if (!isCompressed && isJson(type) && message.length > 0 && (head === 0 || isOneFrame(bytes))) {
      try {
        values.set(messageKey, await readJsonOfAnyLength(rpc.method.input, message, limits, registry));
      } catch (error) {
        throw toConnectError(error);
      }
      yield head > 0 ? toFrame(EMPTY_JSON) : EMPTY_JSON;
    } else if (bytes.length > 0) yield bytes;
  };
}

function isJson(type: string): boolean {
  return type.includes("json");
}

/** By the content type of a unary RPC: Connect frames messages in streams alone. */
function isFramed(type: string): boolean {
  return type.includes("grpc");
}

function isPlain({ headers }: IncomingMessage): boolean {
  return (headers["content-encoding"] ?? "identity") === "identity";
}

/** Makes what looks at a message before it is decoded. Throws the error of the wire. */
function checkOf({ method, maxRequestBytes }: Rpc): (message: Uint8Array) => Promise<void> | void {
  const requireFewFields = fieldBound(method.input, maxRequestBytes);
  return (message) => {
    try {
      requireFewFields(message);
    } catch (error) {
      throw toConnectError(error);
    }
    // A long message has a turn of the event loop to be looked at, and one to be decoded.
    return message.length < LONG ? undefined : nextTurn();
  };
}

/** The compressed bodies that we accept expand at most so many times, from 256 KiB on. JSON of a thousand similar keys expands 30 times. */
const MAX_RATIO = 100;
const MIN_BOUND = 262_144;

/** The compressions that an RPC accepts. What comes out of them is bounded, and looked at before it is decoded. */
export function boundedCompressions(rpc: Rpc): Compression[] {
  const check = checkOf(rpc);
  return [compressionGzip, compressionBrotli].map((compression) => ({
    ...compression,
    decompress: async (bytes, maxBytes) => {
      const bound = Math.max(MIN_BOUND, bytes.length * MAX_RATIO);
      const message = await compression.decompress(bytes, Math.min(maxBytes, bound));
      // JSON is no Protobuf, and passes: it has a bound of its own.
      await check(message);
      return message;
    },
  }));
}

export function isAsyncIterable<T>(value: unknown): value is AsyncIterable<T> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

/**
 * Returns a body that is read to its end when the handler of a stream stops reading: Node would destroy the request, but not the
 * connection, where the rest would stand in the way of the next request.
 */
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

import { create, type Message } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import {
  type Compression,
  compressionNegotiate,
  createAsyncIterable,
  encodeEnvelope,
} from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import type { Rpc, StreamRpc } from "../../api/rpc.ts";
import { invalidArgument } from "../../domain/errors.ts";
import { CONNECT_DEADLINE, GRPC_DEADLINE, requireTime, untilDeadline } from "../wire/deadline.ts";
import { HEAD_BYTES, isCompressed, unframe } from "../wire/grpc.ts";
import { HttpError } from "../wire/http-error.ts";
import { valueLimits } from "../wire/json/parse.ts";
import { JSON_OPTIONS, readJsonMessage } from "../wire/json/reader.ts";
import { malformed, readBinaryMessage, yieldIfLong } from "../wire/protobuf.ts";
import { toLoggedError } from "../wire/protocol.ts";
import type { ReadBody } from "../wire/request-body.ts";
import { type ConnectCall, callOf } from "./call.ts";

/**
 * Adds an RPC with one request message. Connect implements its protocol, but gets an empty message: Connect's errors quote the message and
 * name no field. The RPC reads the message of an admitted call itself, with the rules and errors of the REST paths.
 */
export function addRpc(router: ConnectRouter, rpc: Rpc | StreamRpc, readBody: ReadBody): void {
  const compressions = rpc.acceptsCompression === false ? [] : COMPRESSIONS;
  const decode = messageDecoder(rpc);
  const read = async (call: ConnectCall) => {
    const received = await receive(rpc, readBody, call);
    // The caller may have been revoked while the body was in transit.
    const principal = await rpc.admit(call);
    return { principal, message: await decode(received, call) };
  };
  const options = {
    jsonOptions: JSON_OPTIONS,
    requestGate: async (context: HandlerContext) => {
      const call = callOf(context);
      await rpc.admit(call);
      await logged(requireSupported(call, compressions), call);
    },
    // Connect decompresses nothing but empty messages.
    acceptCompression: compressions.map((algorithm) => ({
      ...algorithm,
      decompress: async (bytes: Uint8Array) => new Uint8Array(bytes),
    })),
  };
  if ("stream" in rpc) {
    const serve = async function* (call: ConnectCall) {
      const { principal, message } = await untilDeadline(() => logged(read(call), call), call.context, call.log);
      yield* rpc.stream(message, principal, call);
    };
    router.rpc(rpc.method, (_, context) => serve(callOf(context)), options);
    return;
  }
  const serve = async (call: ConnectCall) => {
    const { principal, message } = await logged(read(call), call);
    // A long message is decoded, processed and encoded in a tick each.
    await yieldIfLong(message);
    // It may have passed while the body was in transit, or during authentication.
    requireTime(call.context);
    const response = await rpc.invoke(message, principal, call);
    await yieldIfLong(response);
    return response;
  };
  const implementation = (call: ConnectCall) => untilDeadline(() => call.logged(serve(call)), call.context, call.log);
  router.rpc(rpc.method, (_, context) => implementation(callOf(context)), options);
}

function logged<T>(work: Promise<T>, { log }: ConnectCall): Promise<T> {
  return work.catch((cause: unknown) => {
    throw toLoggedError(cause, log);
  });
}

type UniversalRequest = Parameters<ConnectRouter["handlers"][number]>[0];

const EMPTY = new Uint8Array();
const EMPTY_JSON = Buffer.from("{}");

/** Returns the request of an RPC with an empty message. */
export function withoutMessage(request: UniversalRequest, contentType: string): UniversalRequest {
  if (request.method === "GET") {
    const url = new URL(request.url);
    url.searchParams.set("message", url.searchParams.get("encoding") === "json" ? "{}" : "");
    url.searchParams.delete("base64");
    return { ...request, url: url.href };
  }
  request.header.delete("content-length");
  const message = isJson(contentType) ? EMPTY_JSON : EMPTY;
  return { ...request, body: createAsyncIterable([isFramed(contentType) ? encodeEnvelope(0, message) : message]) };
}

function isJson(contentType: string): boolean {
  return contentType.includes("json");
}

/** Returns whether messages are framed: Connect does so only in streams. */
export function isFramed(contentType: string): boolean {
  return contentType.includes("grpc") || contentType.includes("connect+");
}

/** For a message in another compression than Connect's. */
export const UNKNOWN_COMPRESSION = "unsupported compression; allowed: gzip, br";

const COMPRESSIONS = [compressionGzip, compressionBrotli];

/** The names of headers in a protocol. */
const CONNECT = { deadline: CONNECT_DEADLINE, encoding: "content-encoding", accepted: "accept-encoding" };
const CONNECT_STREAM = {
  ...CONNECT,
  encoding: "connect-content-encoding",
  accepted: "connect-accept-encoding",
};
const GRPC = { deadline: GRPC_DEADLINE, encoding: "grpc-encoding", accepted: "grpc-accept-encoding" };

function headersOf({ context: { protocolName, method } }: ConnectCall) {
  if (protocolName !== "connect") return GRPC;
  return method.methodKind === "unary" ? CONNECT : CONNECT_STREAM;
}

/** Rejects a deadline or compression that Connect would reject by quoting it. */
async function requireSupported(call: ConnectCall, compressions: Compression[]): Promise<void> {
  const { deadline, encoding, accepted } = headersOf(call);
  const used = call.query?.get("compression") ?? call.header(encoding) ?? null;
  const { error } = compressionNegotiate(compressions, used, null, accepted);
  if (error !== undefined) throw new ConnectError(UNKNOWN_COMPRESSION, error.code, error.metadata);
  const timeout = call.header(deadline.header);
  if (timeout !== undefined && deadline.parse(timeout) === undefined) {
    throw invalidArgument("timeout", "is not well-formed");
  }
}

const IDENTITY = "identity";

type Received = Awaited<ReturnType<typeof receive>>;

/** Reads the message of a call completely, or not at all. */
async function receive({ maxRequestBytes: limit }: Rpc | StreamRpc, readBody: ReadBody, call: ConnectCall) {
  const { query } = call;
  if (query !== undefined) {
    const [message, compression] = [query.get("message") ?? "", query.get("compression") ?? IDENTITY];
    const bytes = query.get("base64") === "1" ? decodeBase64(message) : Buffer.from(message);
    return { bytes, isJson: query.get("encoding") === "json", compression };
  }
  const { raw, headers } = call.request;
  const { "content-type": type = "" } = headers;
  const compression = call.header(headersOf(call).encoding) ?? IDENTITY;
  if (!isFramed(type)) return { bytes: await readBody(raw, limit), isJson: isJson(type), compression };
  const frame = await readBody(raw, limit + HEAD_BYTES);
  const bytes = unframe(frame, limit, compression !== IDENTITY);
  return { bytes, isJson: isJson(type), compression: isCompressed(frame) ? compression : IDENTITY };
}

function decodeBase64(text: string): Uint8Array {
  try {
    return base64Decode(text);
  } catch {
    throw invalidArgument("message", "is not base64");
  }
}

function messageDecoder(rpc: Rpc | StreamRpc) {
  const { method, maxRequestBytes } = rpc;
  const readBinary = "stream" in rpc ? undefined : rpc.readBinary;
  const limits = valueLimits(maxRequestBytes);
  return async (received: Received, call: ConnectCall): Promise<Message> => {
    const bytes = await decompress(received, maxRequestBytes);
    if (received.isJson) return readJsonMessage(method.input, bytes, limits);
    if (readBinary === undefined) return readBinaryMessage(method.input, bytes, limits);
    readBinary(bytes, call);
    return create(method.input);
  };
}

/** Maximum expansion of compressed messages, from 256 KiB on. JSON of a thousand similar keys expands 30 times. */
const MAX_RATIO = 100;
const MIN_BOUND = 262_144;

async function decompress({ bytes, compression }: Received, maxBytes: number): Promise<Uint8Array> {
  const algorithm = COMPRESSIONS.find(({ name }) => name === compression);
  if (algorithm === undefined) return bytes;
  try {
    return await algorithm.decompress(bytes, Math.min(maxBytes, Math.max(MIN_BOUND, bytes.length * MAX_RATIO)));
  } catch (error) {
    throw ConnectError.from(error).code === Code.ResourceExhausted ? new HttpError("BODY_TOO_LARGE") : malformed();
  }
}

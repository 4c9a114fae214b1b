import { create, type Message, type Registry } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import { type Compression, encodeEnvelope } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import type { FastifyRequest } from "fastify";
import { toConnectError } from "../../api/errors.ts";
import type { Rpc } from "../../api/rpc.ts";
import { invalidArgument } from "../../domain/errors.ts";
import { HEAD_BYTES, isCompressed, unframe } from "../wire/grpc-frame.ts";
import { valueLimits } from "../wire/json/parse.ts";
import { readJsonMessage } from "../wire/json/reader.ts";
import { readBinaryMessage } from "../wire/protobuf.ts";
import type { ReadBody } from "../wire/request-body.ts";
import type { ConnectCall } from "./call.ts";

/** The message of a unary request as it was received. */
interface Received {
  readonly bytes: () => Uint8Array;
  readonly isJson: boolean;
  /** The name of its compression; undefined without. */
  readonly compression: string | undefined;
}

/**
 * Context key of the received message. The RPC decodes it, with the rules and errors of the REST paths, after Connect has admitted the
 * call. Connect itself, whose errors quote the message and name no field, reads an empty message in its place.
 */
export const receivedKey = createContextKey<Received | undefined>(undefined);

const EMPTY = new Uint8Array();
const EMPTY_JSON = Buffer.from("{}");

/** Returns a request body with an empty message. It reads the body completely, or not at all: nothing before its first item is requested. */
export async function* receiveBody(rpc: Rpc, readBody: ReadBody, request: FastifyRequest, values: ContextValues) {
  const { "content-type": type = "" } = request.headers;
  const isJson = type.includes("json");
  const placeholder = isJson ? EMPTY_JSON : EMPTY;
  try {
    const received = isFramed(type)
      ? await receiveFrame(rpc, readBody, request)
      : await receiveMessage(rpc, readBody, request);
    values.set(receivedKey, { ...received, isJson });
  } catch (error) {
    throw toConnectError(error);
  }
  yield isFramed(type) ? encodeEnvelope(0, placeholder) : placeholder;
}

async function receiveMessage({ maxRequestBytes }: Rpc, readBody: ReadBody, { raw, headers }: FastifyRequest) {
  const bytes = await readBody(raw, maxRequestBytes);
  return { bytes: () => bytes, compression: headers["content-encoding"] };
}

async function receiveFrame({ maxRequestBytes }: Rpc, readBody: ReadBody, { raw, headers }: FastifyRequest) {
  const frame = await readBody(raw, maxRequestBytes + HEAD_BYTES);
  const { "grpc-encoding": encoding = "identity" } = headers;
  const bytes = unframe(frame, maxRequestBytes, encoding !== "identity");
  return { bytes: () => bytes, compression: isCompressed(frame) ? String(encoding) : undefined };
}

/** Returns whether messages are framed, by the content type: Connect does so only in streams. */
export function isFramed(type: string): boolean {
  return type.includes("grpc");
}

/** Takes the message of a Connect GET. Returns its URL with an empty message. */
export function receiveQuery(url: string, values: ContextValues): string {
  const target = new URL(url);
  const { searchParams: query } = target;
  const [message, isBase64] = [query.get("message") ?? "", query.get("base64") === "1"];
  const isJson = query.get("encoding") === "json";
  const bytes = () => (isBase64 ? decodeBase64(message) : Buffer.from(message));
  values.set(receivedKey, { bytes, isJson, compression: query.get("compression") ?? undefined });
  query.set("message", isJson ? "{}" : "");
  query.delete("base64");
  return target.href;
}

function decodeBase64(text: string): Uint8Array {
  try {
    return base64Decode(text);
  } catch {
    throw invalidArgument("message", "is not base64");
  }
}

/** Decodes the received message of an admitted call. */
export type DecodeReceived = (received: Received | undefined, call: ConnectCall) => Promise<Message>;

/** Returns the decoder of an RPC. `registry` has the types that `google.protobuf.Any` may contain. */
export function receivedDecoder(rpc: Rpc, registry: Registry): DecodeReceived {
  const { method, maxRequestBytes, readBinary } = rpc;
  const limits = valueLimits(maxRequestBytes);
  return async (received, call) => {
    if (received === undefined) throw new Error("a call without a message");
    const bytes = await decompress(received, maxRequestBytes);
    if (received.isJson) return readJsonMessage(method.input, bytes, limits, registry);
    if (readBinary === undefined) return readBinaryMessage(method.input, bytes, limits);
    readBinary(bytes, call);
    return create(method.input);
  };
}

/** Maximum expansion of compressed messages, from 256 KiB on. JSON of a thousand similar keys expands 30 times. */
const MAX_RATIO = 100;
const MIN_BOUND = 262_144;

const COMPRESSIONS: readonly Compression[] = [compressionGzip, compressionBrotli];

async function decompress({ bytes: receive, compression }: Received, maxBytes: number): Promise<Uint8Array> {
  const bytes = receive();
  const algorithm = COMPRESSIONS.find(({ name }) => name === compression);
  if (algorithm === undefined) return bytes;
  return algorithm.decompress(bytes, Math.min(maxBytes, Math.max(MIN_BOUND, bytes.length * MAX_RATIO)));
}

/** The compressions for Connect, which decompresses nothing but empty messages. */
export const ACCEPTED_COMPRESSIONS: Compression[] = COMPRESSIONS.map((compression) => ({
  ...compression,
  decompress: async (bytes) => new Uint8Array(bytes),
}));

import { Code, ConnectError } from "@connectrpc/connect";
import { compressedFlag } from "@connectrpc/connect/protocol";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { HttpError, type HttpErrorReason } from "./http-error.ts";
import { malformed } from "./protobuf.ts";
import type { Protocol } from "./protocol.ts";

/** The prefix of each gRPC and gRPC-Web message: a byte of flags and the length, big-endian. */
export const HEAD_BYTES = 5;

/** Where the length of a frame begins. */
export const LENGTH_AT = 1;

/** Does what Connect's `encodeEnvelope` does in a fraction of the time. The frame may be memoized, and must not retain a pool of buffers. */
export function toFrame(message: Uint8Array): Uint8Array {
  const frame = Buffer.allocUnsafeSlow(HEAD_BYTES + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, LENGTH_AT);
  frame.set(message, HEAD_BYTES);
  return frame;
}

/** `start` is where the frame begins. */
export function isCompressed(bytes: Uint8Array, start = 0): boolean {
  return ((bytes[start] ?? 0) & compressedFlag) !== 0;
}

/** Returns the message of a unary call. `limit` in bytes. Throws an error for the client. */
export function unframe(bytes: Uint8Array, limit: number, acceptsCompressed = false): Uint8Array {
  if (bytes.length === 0) throw unimplemented("missing input message");
  if (bytes.length < HEAD_BYTES) throw malformed();
  const length = lengthOf(bytes);
  if (length > limit) throw new HttpError("BODY_TOO_LARGE");
  if (!acceptsCompressed && isCompressed(bytes)) throw unexpectedCompression();
  const end = HEAD_BYTES + length;
  if (end > bytes.length) throw malformed();
  if (end < bytes.length) throw unimplemented("received extra input message");
  return bytes.subarray(HEAD_BYTES);
}

function unimplemented(problem: string): Error {
  return new ConnectError(`protocol error: ${problem} for unary method`, Code.Unimplemented);
}

/** gRPC requires INTERNAL (doc/compression.md). */
export function unexpectedCompression(): ConnectError {
  return new ConnectError("a message is compressed, but the call declares no compression", Code.Internal);
}

/** Without a DataView, which costs more to create than to read four bytes. `start` is where the frame begins. */
export function lengthOf(bytes: Uint8Array, start = 0): number {
  let length = 0;
  for (let i = start + LENGTH_AT; i < start + HEAD_BYTES; i++) length = length * 256 + (bytes[i] ?? 0);
  return length;
}

/** A content type that expects a gRPC status, with any message format: an RPC may not support it, such as the base64 of `-web-text`. */
const GRPC_TYPE = /^application\/grpc(-web(?:-text)?)?(?:\+[\w.-]+)?(?=;|$)/i;

/** Returns the protocol of a request that expects a gRPC status, and the type of its responses; undefined for other requests. */
export function grpcTypeOf(contentType = ""): { readonly protocol: Protocol; readonly type: string } | undefined {
  const [type, web] = GRPC_TYPE.exec(contentType) ?? [];
  return type === undefined ? undefined : { protocol: web === undefined ? "grpc" : "grpc_web", type };
}

/**
 * In gRPC, what is no RPC is an unknown method, and so is an RPC in an unknown message format (doc/statuscodes.md). Without details, as
 * the conformance suite requires.
 */
const UNIMPLEMENTED: ReadonlyMap<HttpErrorReason, string> = new Map([
  ["PATH_NOT_FOUND", "the server does not implement this method"],
  ["METHOD_NOT_ALLOWED", "gRPC calls must be POST requests"],
  [
    "MEDIA_TYPE_NOT_SUPPORTED",
    "the content type must be application/grpc or application/grpc-web, with +proto or +json",
  ],
]);

/** Returns what gRPC callers receive for an error of the transport. */
export function asGrpcError(error: ConnectError): ConnectError {
  const message = error instanceof HttpError ? UNIMPLEMENTED.get(error.reason) : undefined;
  return message === undefined ? error : new ConnectError(message, Code.Unimplemented, error.metadata);
}

export function grpcStatus(error: ConnectError, trailers = new Headers()): Headers {
  setTrailerStatus(trailers, error);
  unescapeMessage(trailers);
  return trailers;
}

/** Escapes from %20 to %7E except %25. */
const PRINTABLE = /%(2[0-46-9A-F]|[3-6][0-9A-F]|7[0-9A-E])/g;

/**
 * Connect percent-encodes `grpc-message` like a URL component. gRPC encodes only `%` and what is not printable ASCII (PROTOCOL-HTTP2,
 * "Percent-Byte-Unencoded"), and some clients, such as grpc-js, decode no more than that and would show `name%3A`.
 */
export function unescapeMessage(trailer: Headers): void {
  const message = trailer.get("grpc-message");
  if (message === null) return;
  const plain = message.replace(PRINTABLE, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  trailer.set("grpc-message", plain);
}

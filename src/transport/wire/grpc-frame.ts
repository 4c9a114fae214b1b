import { Code, ConnectError } from "@connectrpc/connect";
import { compressedFlag } from "@connectrpc/connect/protocol";
import { HttpError } from "./http-error.ts";
import { malformed } from "./protobuf.ts";

/** The prefix of each gRPC and gRPC-Web message: a byte of flags and the length, big-endian. */
export const HEAD_BYTES = 5;

const LENGTH_AT = 1;

/** Does what Connect's `encodeEnvelope` does in a fraction of the time. The frame may be memoized, and must not retain a pool of buffers. */
export function toFrame(message: Uint8Array): Uint8Array {
  const frame = Buffer.allocUnsafeSlow(HEAD_BYTES + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, LENGTH_AT);
  frame.set(message, HEAD_BYTES);
  return frame;
}

/** Returns whether the message of a frame is compressed. */
export function isCompressed(frame: Uint8Array): boolean {
  return ((frame[0] ?? 0) & compressedFlag) !== 0;
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

/** Without a DataView, which costs more to create than to read four bytes. */
function lengthOf(frame: Uint8Array): number {
  let length = 0;
  for (let i = LENGTH_AT; i < HEAD_BYTES; i++) length = length * 256 + (frame[i] ?? 0);
  return length;
}

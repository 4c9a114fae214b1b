import { Code, ConnectError } from "@connectrpc/connect";
import { compressedFlag } from "@connectrpc/connect/protocol";
import { HttpError } from "./http-error.ts";
import { malformed } from "./protobuf.ts";

/** The prefix of each gRPC and gRPC-Web message: a byte of flags and the length, big-endian. */
export const HEAD_BYTES = 5;

const LENGTH_AT = 1;
const LENGTH_BYTES = 4;

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

/** Returns the one message of a unary call. `limit` in bytes. Throws an error for the client, as Connect does for the same bytes. */
export function unframe(bytes: Uint8Array, limit: number, acceptsCompressed = false): Uint8Array {
  if (bytes.length === 0) throw missing();
  const end = endOfFrame(bytes, 0, limit);
  if (!acceptsCompressed && isCompressed(bytes)) throw unexpectedCompression();
  if (end < bytes.length) {
    endOfFrame(bytes, end, limit);
    throw new ConnectError("protocol error: received extra input message for unary method", Code.Unimplemented);
  }
  return bytes.subarray(HEAD_BYTES);
}

function endOfFrame(bytes: Uint8Array, start: number, limit: number): number {
  const here = bytes.length - start;
  if (here < HEAD_BYTES) throw malformed();
  const length = lengthAt(bytes, start + LENGTH_AT);
  if (length > limit) throw new HttpError("BODY_TOO_LARGE");
  // Connect's handler does the same: it ignores a prefix that nothing follows.
  if (start === 0 && here === HEAD_BYTES && length > 0) throw missing();
  const end = start + HEAD_BYTES + length;
  if (end > bytes.length) throw malformed();
  return end;
}

function missing(): Error {
  return new ConnectError("protocol error: missing input message for unary method", Code.Unimplemented);
}

/** gRPC requires INTERNAL (doc/compression.md). */
export function unexpectedCompression(): ConnectError {
  return new ConnectError("a message is marked as compressed in a call that names no compression", Code.Internal);
}

/** Without a DataView, which costs more to create than to read four bytes. */
function lengthAt(bytes: Uint8Array, index: number): number {
  let length = 0;
  for (let i = index; i < index + LENGTH_BYTES; i++) length = length * 256 + (bytes[i] ?? 0);
  return length;
}

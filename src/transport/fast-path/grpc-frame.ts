import { Code, ConnectError } from "@connectrpc/connect";
import { compressedFlag } from "@connectrpc/connect/protocol";
import { unexpectedCompression } from "../connect/read-errors.ts";
import { HttpError } from "../errors/http-error.ts";
import { malformed } from "./codecs/proto.ts";

/** The prefix of each gRPC and gRPC-Web message: a byte of flags and the length, big-endian. */
export const HEAD_BYTES = 5;

const LENGTH_AT = 1;
const LENGTH_BYTES = 4;

export function toFrame(message: string | Uint8Array, flags = 0): Uint8Array {
  const length = Buffer.byteLength(message);
  const frame = Buffer.allocUnsafe(HEAD_BYTES + length);
  frame[0] = flags;
  frame.writeUInt32BE(length, LENGTH_AT);
  if (typeof message === "string") frame.write(message, HEAD_BYTES);
  else frame.set(message, HEAD_BYTES);
  return frame;
}

/** Whether the bytes are one frame, whole, and nothing else. */
export function isOneFrame(bytes: Uint8Array): boolean {
  return bytes.length >= HEAD_BYTES && lengthAt(bytes, LENGTH_AT) === bytes.length - HEAD_BYTES;
}

/** Returns the one message of a unary call. `limit` in bytes. Throws what Connect's handler answers to the same bytes. */
export function unframe(bytes: Uint8Array, limit: number): Uint8Array {
  if (bytes.length === 0) throw missing();
  const end = endOfFrame(bytes, 0, limit);
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
  const flags = bytes[start] ?? 0;
  if (end > bytes.length) throw malformed();
  if ((flags & compressedFlag) !== 0) throw unexpectedCompression();
  return end;
}

function missing(): Error {
  return new ConnectError("protocol error: missing input message for unary method", Code.Unimplemented);
}

/** Without a DataView, which costs more to create than to read four bytes. */
function lengthAt(bytes: Uint8Array, index: number): number {
  let length = 0;
  for (let i = index; i < index + LENGTH_BYTES; i++) length = length * 256 + (bytes[i] ?? 0);
  return length;
}

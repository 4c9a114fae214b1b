import { Flag, Frame, frame, headerBlock, PREFACE } from "../support/http2-wire.ts";
import type { Field, HostileRequest } from "./calls.ts";

/** The client's connection preface (RFC 9113 §3.4) with empty settings. */
export const HELLO = Buffer.concat([PREFACE, frame(Frame.SETTINGS, 0, 0)]);

/** Returns the header fields of an HTTP/2 request (RFC 9113 §8.3.1). */
export function fieldsOf({ method, path, fields }: HostileRequest): Field[] {
  return [[":method", method], [":scheme", "http"], [":path", path], [":authority", "localhost"], ...fields];
}

/** Returns the HEADERS frame of a request with a body. */
export function headersFrame(stream: number, fields: readonly Field[], flags = 0): Buffer {
  return frame(Frame.HEADERS, Flag.END_HEADERS | flags, stream, headerBlock(fields));
}

/** Returns RST_STREAM; the default code is CANCEL. */
export function resetFrame(stream: number, code = 8): Buffer {
  return frame(Frame.RST_STREAM, 0, stream, uint32(code));
}

/** Returns GOAWAY for all streams up to this one. */
export function goawayFrame(lastStream: number, code = 0): Buffer {
  return frame(Frame.GOAWAY, 0, 0, Buffer.concat([uint32(lastStream), uint32(code)]));
}

/** Returns four bytes in big-endian order. */
export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Maximum size of a DATA frame unless the server allows more (RFC 9113 §4.2). */
const MAX_FRAME_SIZE = 16_384;

/** Returns the frames of a complete request. */
export function toHttp2(stream: number, request: HostileRequest): Buffer {
  const { body } = request;
  const headers = headersFrame(stream, fieldsOf(request), body.length === 0 ? Flag.END_STREAM : 0);
  const data = Array.from({ length: Math.ceil(body.length / MAX_FRAME_SIZE) }, (_, place) => {
    const end = (place + 1) * MAX_FRAME_SIZE;
    return frame(Frame.DATA, end < body.length ? 0 : Flag.END_STREAM, stream, body.subarray(end - MAX_FRAME_SIZE, end));
  });
  return Buffer.concat([headers, ...data]);
}

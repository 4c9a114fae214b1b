import { create, type Message } from "@bufbuild/protobuf";
import { StreamVerifyRequestSchema, VerifyApiKeyRequestSchema } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { Call } from "../../api/rpc.ts";
import { HEAD_BYTES, isCompressed, LENGTH_AT, lengthOf, unexpectedCompression } from "../wire/grpc.ts";
import { HttpError } from "../wire/http-error.ts";
import { valueLimits } from "../wire/json/parse.ts";
import { readBinaryMessage } from "../wire/protobuf.ts";
import type { Codec } from "./codecs.ts";

/** Largest message of a client in bytes. The longest that breaks no rule has 18 KB. */
const MAX_MESSAGE = 32_768;

const NO_BYTES = Buffer.alloc(0);

/** The received bytes of a stream, from which its messages are taken. */
export class MessageReader {
  #bytes: Uint8Array = NO_BYTES;
  #start = 0;
  /** Received after `#bytes`: grpc-go sends a DATA frame per message, and to join each would copy all that came before. */
  #chunks: Uint8Array[] = [];
  /** Bytes that are not taken yet. */
  size = 0;

  add(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.size += chunk.length;
  }

  /** Returns the next message; undefined if it is incomplete. Throws an error for the client, which ends the stream. */
  next(): Uint8Array | undefined {
    if (this.#chunks.length > 0) this.#join();
    if (this.size < HEAD_BYTES) return undefined;
    const head = this.#start;
    const length = lengthOf(this.#bytes, head);
    if (length > MAX_MESSAGE) throw new HttpError("BODY_TOO_LARGE");
    if (this.size < HEAD_BYTES + length) return undefined;
    if (isCompressed(this.#bytes, head)) throw unexpectedCompression();
    const start = head + HEAD_BYTES;
    this.#start = start + length;
    this.size -= HEAD_BYTES + length;
    return this.#bytes.subarray(start, this.#start);
  }

  /** Drops what was received. */
  clear(): void {
    this.#bytes = NO_BYTES;
    this.#start = 0;
    this.#chunks = [];
    this.size = 0;
  }

  #join(): void {
    this.#bytes = Buffer.concat([this.#bytes.subarray(this.#start), ...this.#chunks]);
    this.#start = 0;
    this.#chunks = [];
  }
}

/** Tags of fields: the number times 8 plus the wire type (https://protobuf.dev/programming-guides/encoding/). */
const ID = 0x08;
const REQUEST = 0x12;
export const RESPONSE = 0x12;
export const ERROR = 0x1a;

const LIMITS = valueLimits(MAX_MESSAGE);

/** Reads a `StreamVerifyRequest`: directly if both fields are in order, and the request in it by `codec`. Throws `INVALID_ARGUMENT`. */
export function readStreamRequest(bytes: Uint8Array, codec: Codec, call: Call): { id: number; request: Message } {
  if (bytes[0] === ID) {
    const at = afterVarint(bytes, 1);
    const start = afterVarint(bytes, at + 1);
    const isDirect = bytes[at] === REQUEST && start + varint(bytes, at + 1) === bytes.length;
    const id = varint(bytes, 1);
    if (isDirect && id <= MAX_ID) return { id, request: codec.read(bytes.subarray(start), call) };
  }
  const { id, request = create(VerifyApiKeyRequestSchema) } = readBinaryMessage(
    StreamVerifyRequestSchema,
    bytes,
    LIMITS,
  );
  return { id, request };
}

const MAX_ID = 2 ** 32 - 1;

/** Returns the index after a varint. */
function afterVarint(bytes: Uint8Array, start: number): number {
  let end = start;
  while ((bytes[end] ?? 0) >= 0x80) end++;
  return end + 1;
}

/** Returns the value of a varint, which may be inexact above 2^53. */
function varint(bytes: Uint8Array, start: number): number {
  let [value, factor] = [0, 1];
  for (let i = start; i < bytes.length; i++, factor *= 0x80) {
    const byte = bytes[i] ?? 0;
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) break;
  }
  return value;
}

/** Bytes of a new buffer: the answers of a tick of most streams. */
const MIN_BUFFER = 16_384;

/** The most bytes of an answer besides the result: the head of its frame, two tags, the id and the length. */
const OVERHEAD = HEAD_BYTES + 2 + 5 + 5;

/** Frames with a `StreamVerifyResponse` each, in one buffer. */
export class AnswerWriter {
  #bytes: Buffer = NO_BYTES;
  #end = 0;

  /** Adds an answer: `field` is the tag of the result, which is encoded already. */
  add(id: number, field: number, result: Uint8Array): void {
    const head = this.#reserve(OVERHEAD + result.length);
    const bytes = this.#bytes;
    let end = head + HEAD_BYTES;
    if (id !== 0) {
      bytes[end++] = ID;
      end = writeVarint(bytes, end, id);
    }
    bytes[end++] = field;
    end = writeVarint(bytes, end, result.length);
    bytes.set(result, end);
    this.#end = end + result.length;
    bytes[head] = 0;
    bytes.writeUInt32BE(this.#end - head - HEAD_BYTES, head + LENGTH_AT);
  }

  /** Returns the frames, and begins new ones. */
  take(): Uint8Array {
    const frames = this.#bytes.subarray(0, this.#end);
    // An idle stream holds no buffer.
    this.#bytes = NO_BYTES;
    this.#end = 0;
    return frames;
  }

  #reserve(bytes: number): number {
    const needed = this.#end + bytes;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(MIN_BUFFER, needed * 2));
      larger.set(this.#bytes.subarray(0, this.#end));
      this.#bytes = larger;
    }
    return this.#end;
  }
}

export function writeVarint(bytes: Uint8Array, start: number, value: number): number {
  let [end, rest] = [start, value];
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes[end++] = (rest % 0x80) + 0x80;
  bytes[end++] = rest;
  return end;
}

import { brotliCompressSync, constants, deflateSync, gzipSync } from "node:zlib";
import type { Seeded } from "../../support/seeded.ts";
import { frame } from "../../support/wire.ts";
import type { Field } from "../calls.ts";
import { chooseDamage } from "../damage.ts";

/** A body instead of a message. */
export interface OddBody {
  readonly body: Buffer;
  /** Additional header fields; they replace those of the same name. */
  readonly fields?: readonly Field[];
  /** Whether it must not be executed as a request. */
  readonly isNoRequest?: boolean;
}

/** Creates a body from the bytes of a message. */
type MakeBody = (message: Buffer, random: Seeded) => OddBody;

const MIB = 2 ** 20;

/** Sizes to which a few KiB expand. */
const BOMBS = [MIB, 8 * MIB, 64 * MIB];

/** The best quality takes seconds for a bomb. */
const FAST_BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };

const COMPRESSIONS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: gzipSync,
  br: brotliCompressSync,
  deflate: deflateSync,
  snappy: (bytes) => bytes,
  identity: (bytes) => bytes,
  "": (bytes) => bytes,
};

/** Compressed bytes, and others that are declared so. */
function chooseCompressed(message: Buffer, random: Seeded): { readonly encoding: string; readonly bytes: Buffer } {
  const [encoding, compress] = random.pick(Object.entries(COMPRESSIONS));
  switch (random.below(7)) {
    case 0:
      return { encoding, bytes: message };
    case 1:
      return { encoding, bytes: compress(message).subarray(0, random.below(compress(message).length + 1)) };
    case 2:
      return { encoding, bytes: Buffer.concat([compress(message), Buffer.from("tail")]) };
    case 3:
      return { encoding: "gzip", bytes: gzipSync(Buffer.alloc(random.pick(BOMBS))) };
    case 4:
      return { encoding: "br", bytes: brotliCompressSync(Buffer.alloc(random.pick(BOMBS)), FAST_BROTLI) };
    case 5:
      return { encoding, bytes: chooseDamage(random)(compress(message)) };
    default:
      return { encoding, bytes: compress(message) };
  }
}

/** Envelopes of gRPC, gRPC-Web and Connect streams. */
export const ENVELOPES: Readonly<Record<string, MakeBody>> = {
  // Connect ignores unknown flags (test/transport/reflection.test.ts).
  flags: (message, random) => ({ body: frame(message, { flags: 2 + random.below(254) }) }),
  "a length that is too large": (message, random) => {
    const excess = random.pick([1, 5, 1_000, 2 ** 31, 2 ** 32 - 1 - message.length]);
    return { body: frame(message, { length: message.length + excess }), isNoRequest: true };
  },
  "a length that is too small": (message, random) => {
    const length = random.below(Math.max(1, message.length));
    return { body: frame(message, { length }), isNoRequest: message.length > 0 };
  },
  "a cut": (message, random) => {
    const whole = frame(message);
    return { body: whole.subarray(0, random.below(whole.length)), isNoRequest: true };
  },
  "a second message": (message, random) => ({
    body: Buffer.concat([frame(message), random.pick([frame(message), frame(Buffer.alloc(0)), Buffer.of(0)])]),
    isNoRequest: true,
  }),
  "many messages": (message, random) => ({
    body: Buffer.concat(Array.from({ length: 2 + random.below(500) }, () => frame(message))),
    isNoRequest: true,
  }),
  "no message": () => ({ body: Buffer.alloc(0), isNoRequest: true }),
  compression: (message, random) => {
    const { encoding, bytes } = chooseCompressed(message, random);
    const field: Field = [random.pick(["grpc-encoding", "connect-content-encoding"]), encoding];
    return { body: frame(bytes, { flags: random.below(4) === 0 ? 0 : 1 }), fields: [field] };
  },
};

const NESTED = 20_000;

/** Texts instead of a message in JSON. */
const JSON_TEXTS: readonly string[] = [
  "",
  "null",
  "[]",
  '"text"',
  "1",
  "{",
  "{}{}",
  "{},{}",
  "[{}]",
  '{"credential":null}',
  '{"credential":1}',
  '{"credential":["a"]}',
  '{"credential":"a","credential":"b"}',
  '{"credential":"a","Credential":"b"}',
  '{"credential":"\\ud800"}',
  '{"credential":"\\u0000"}',
  '{"credential":"a\u0000b"}',
  '{"__proto__":{"credential":"a"}}',
  '{"constructor":{}}',
  '{"page_size":1e400}',
  '{"page_size":-1}',
  '{"page_size":1.5}',
  '{"page_size":"9007199254740993"}',
  '{"custom_claims":{"a":1e400}}',
  '{"custom_claims":{"a":NaN}}',
  '{"requests":[]}',
  '{"requests":{}}',
  '{"ttl":"P1D"}',
  '{"ttl":"99999999999999999999y"}',
  '\ufeff{"credential":"a"}',
  `{"credential":${"[".repeat(NESTED)}${"]".repeat(NESTED)}}`,
  `{"custom_claims":${'{"a":'.repeat(NESTED)}1${"}".repeat(NESTED)}}`,
  `${"[".repeat(NESTED)}`,
  `{"credential":"${"a".repeat(500_000)}"}`,
  `{"metadata":{${Array.from({ length: 5_000 }, (_, place) => `"k${place}":"v"`).join(",")}}}`,
  `{${Array.from({ length: 5_000 }, (_, place) => `"k${place}":1`).join(",")}}`,
  `{"scopes":[${Array.from({ length: 20_000 }, () => '"a"').join(",")}]}`,
];

/** Bytes instead of a message in Protobuf, in hexadecimal. */
const PROTO_BYTES: readonly string[] = [
  "ff",
  "ffffffffffffffffffff01",
  "0a",
  "0aff",
  "0affffffff7f",
  "0a05",
  "00",
  "0000",
  "0b0c",
  "0b",
  "0c",
  "0f",
  "0a0161120161",
  "0a02c328",
  "0a03eda080",
  "080180808080808080808001",
  "1a".repeat(64),
  "0d00000000",
  "0900000000",
  "fa".repeat(1_000),
  "0b".repeat(20_000),
  "7a00".repeat(5_000),
  `5a80808004${"5a00".repeat(100)}`,
];

/** Bodies instead of a message, with or without an envelope. */
export const MESSAGES: Readonly<Record<"json" | "proto", Readonly<Record<string, MakeBody>>>> = {
  json: {
    "odd JSON": (_, random) => ({ body: Buffer.from(random.pick(JSON_TEXTS)) }),
    "damaged JSON": (message, random) => ({ body: chooseDamage(random)(message) }),
  },
  proto: {
    "odd Protobuf": (_, random) => ({ body: Buffer.from(random.pick(PROTO_BYTES), "hex") }),
    "damaged Protobuf": (message, random) => ({ body: chooseDamage(random)(message) }),
    "deep nesting": (_, random) => ({ body: nested(50 + random.below(3_000)) }),
  },
};

/** Nested messages: field 1 of each, this deep. */
function nested(depth: number): Buffer {
  let message = Buffer.alloc(0);
  for (let level = 0; level < depth; level++)
    message = Buffer.concat([Buffer.of(0x0a), varint(message.length), message]);
  return message;
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

/** The same for protocols that compress the whole body: REST and Connect's unary calls. */
export function compressedBody(message: Buffer, random: Seeded): OddBody {
  const { encoding, bytes } = chooseCompressed(message, random);
  return { body: bytes, fields: [["content-encoding", encoding]] };
}

/** Header fields that define how a message is read, or its deadline. */
const ODD_FIELDS: readonly Field[] = [
  ["content-type", ""],
  ["content-type", "application/json; charset=utf-16"],
  ["content-type", "APPLICATION/GRPC"],
  ["content-type", "application/grpc+thrift"],
  ["content-type", "application/grpc-web-text"],
  ["content-type", "application/connect+json"],
  ["content-type", "application/connect+proto"],
  ["content-type", "text/plain"],
  ["content-type", "multipart/form-data"],
  ["content-type", "application/x-www-form-urlencoded"],
  ["content-type", "a".repeat(5_000)],
  ["grpc-encoding", "gzip,gzip"],
  ["grpc-accept-encoding", "a".repeat(5_000)],
  ["accept-encoding", "gzip;q=2, br;q=x"],
  ["grpc-timeout", ""],
  ["grpc-timeout", "0n"],
  ["grpc-timeout", "1n"],
  ["grpc-timeout", "-1S"],
  ["grpc-timeout", "99999999H"],
  ["grpc-timeout", "999999999H"],
  ["grpc-timeout", "1000H"],
  ["grpc-timeout", "1"],
  ["grpc-timeout", "S"],
  ["connect-timeout-ms", "0"],
  ["connect-timeout-ms", "-1"],
  ["connect-timeout-ms", "9999999999"],
  ["connect-timeout-ms", "99999999999"],
  ["connect-timeout-ms", "1e3"],
  ["connect-protocol-version", "2"],
  ["connect-protocol-version", ""],
  ["authorization", "Bearer"],
  ["authorization", "Bearer  "],
  ["authorization", `Bearer ${"a".repeat(9_000)}`],
  ["authorization", "Basic YTpi"],
  ["cache-control", "no-cache, no-store, max-age=x"],
  ["x-request-id", "a b"],
];

export function chooseOddField(random: Seeded): Field {
  return random.pick(ODD_FIELDS);
}

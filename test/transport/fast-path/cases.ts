import { brotliCompressSync, gzipSync } from "node:zlib";
import type { DescMethodUnary, JsonObject } from "@bufbuild/protobuf";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { bodyOf, framed, pathOf, type Request, type Way } from "./protocols.ts";
import { MAX_REQUEST_BYTES } from "./subjects.ts";

/** A request over some protocols, and whether the fast path serves it. */
export interface Case {
  readonly name: string;
  readonly request: (way: Way) => Omit<Request, "id">;
  /** Default: always. */
  readonly isTaken?: (way: Way) => boolean;
  /** Default: all. */
  readonly ways?: (way: Way) => boolean;
}

const { batchVerifyApiKeys, deriveToken } = ApiKeysService.method;

type Headers = NonNullable<Request["headers"]>;

const isGrpc = ({ protocol }: Way) => protocol === "grpc";
const isJson = ({ codec }: Way) => codec === "json";
const isProto = ({ codec }: Way) => codec === "proto";
const isHttp1 = ({ http }: Way) => http === 1;
const isHttp2 = ({ http }: Way) => http === 2;
const never = () => false;

function calling(credential: string, headers: Headers = {}): Case["request"] {
  return (way) => ({ headers, parts: [bodyOf(way, { credential })] });
}

function sending(bytes: string | Uint8Array): Case["request"] {
  return (way) => ({ parts: [framed(way, Buffer.from(bytes))] });
}

/** Valid and invalid gRPC frames. */
function sendingRaw(...parts: readonly (string | Uint8Array)[]): Case["request"] {
  return () => ({ parts: parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : part)) });
}

/** The credential selects what the implementation does. */
const behaviours = [
  ...["ok", "later", "headers", "headers, then error", "large", "fault", "fault, later", "unavailable"],
  ...[
    "precondition, later",
    "error with metadata",
    "error without a message",
    "error with a long message",
    "no message",
    "",
  ],
].map((credential): Case => ({ name: `credential "${credential}"`, request: calling(credential) }));

const admission = ["no", "no, later", "later"].map(
  (authorization): Case => ({ name: `authorization "${authorization}"`, request: calling("ok", { authorization }) }),
);

const MALFORMED_TIMEOUTS = ["soon", "", "-1", "123456789012"];

const timeouts = ["connect-timeout-ms", "grpc-timeout"].flatMap((name) => {
  const unit = name === "grpc-timeout" ? "m" : "";
  const of = (text: string, credential: string): Case => ({
    name: `${name} ${text}, credential "${credential}"`,
    request: calling(credential, { [name]: text }),
    ways: ({ protocol }) => protocol === (unit === "" ? "connect" : "grpc"),
    // The fallback rejects a malformed value.
    isTaken: () => MALFORMED_TIMEOUTS.every((malformed) => text !== `${malformed}${unit}`),
  });
  return [
    ...["0", "5000", ...MALFORMED_TIMEOUTS].map((text) => of(text + unit, "ok")),
    of(`5000${unit}`, "later"),
    of(`99999999${unit}`, "later"),
    of(`40${unit}`, "wait"),
    of(`0${unit}`, "wait"),
  ];
});

const headers: Case[] = [
  { name: "a header of the caller", request: calling("headers", { "x-sent": "1" }) },
  { name: "a header twice", request: calling("headers", { "x-sent": ["1", "2"] }) },
  { name: "a malformed request id", request: calling("ok", { "x-request-id": "a b" }) },
  {
    name: "an empty message of many fields",
    request: calling("ok", { "user-agent": "a", accept: "*/*", te: "trailers" }),
  },
  { name: "an origin", request: calling("ok", { origin: "https://example.com" }), isTaken: never },
  { name: "encoding identity", request: calling("ok", { "content-encoding": "identity" }), isTaken: never },
  { name: "gRPC encoding identity", request: calling("ok", { "grpc-encoding": "identity" }) },
  { name: "gRPC encoding snappy", request: calling("ok", { "grpc-encoding": "snappy" }), isTaken: never },
  { name: "encoding snappy", request: calling("ok", { "content-encoding": "snappy" }), isTaken: never },
  { name: "expect", request: calling("ok", { expect: "100-continue" }), isTaken: never, ways: isHttp1 },
  ...["gzip", "br", "identity", "deflate, gzip;q=0.1, br", ""].flatMap((accepted) =>
    ["ok", "large", "error with a long message"].map((credential): Case => {
      const names = { "accept-encoding": accepted, "grpc-accept-encoding": accepted };
      return { name: `accepting "${accepted}", credential "${credential}"`, request: calling(credential, names) };
    }),
  ),
];

const types = [
  ...["application/json;charset=utf-8", "application/json; charset=latin1", "APPLICATION/JSON", "text/plain", "*/*"],
  ...["application/grpc-web", "application/grpc-web+json", "application/connect+json", "application/x-protobuf"],
].map((type): Case => ({ name: `type ${type}`, request: calling("ok", { "content-type": type }), isTaken: never }));

const otherTypes: Case[] = [
  { name: "no type", request: calling("ok", { "content-type": null }), isTaken: never },
  { name: "the type twice", request: calling("ok", { "content-type": ["a", "b"] }), isTaken: never, ways: isHttp1 },
  {
    name: "type of JSON with its character set",
    request: calling("ok", { "content-type": "application/json; charset=utf-8" }),
    ways: (way) => isJson(way) && !isGrpc(way),
  },
  {
    name: "type application/grpc+proto",
    request: calling("ok", { "content-type": "application/grpc+proto" }),
    ways: (way) => isProto(way) && isGrpc(way),
  },
];

const bodies: Case[] = [
  { name: "an empty body", request: () => ({ parts: [] }) },
  { name: "an empty message", request: sending("") },
  ...["{", "[]", '"a"', "null", '{"credential":1}', '{"credential":"a","credential":"b"}', '{"nothing":1}'].map(
    (text): Case => ({ name: `JSON ${text}`, request: sending(text), ways: isJson }),
  ),
  { name: "JSON that is not UTF-8", request: sending(Buffer.from('{"credential":"\xff"}', "latin1")), ways: isJson },
  { name: "JSON with a lone surrogate", request: sending('{"credential":"\\ud800"}'), ways: isJson },
  { name: "JSON with a hundred levels", request: sending("[".repeat(200)), ways: isJson },
  ...["0a", "0a05ab", "07", "0a01ff", "1801", "120161", "0a0161" + "0a0162", "0800", "ffffffffffffffffffff01"].map(
    (hex): Case => ({ name: `bytes ${hex}`, request: sending(Buffer.from(hex, "hex")), ways: isProto }),
  ),
  { name: "a body at the limit", request: atLimit(0) },
  { name: "a body above the limit", request: atLimit(1), isTaken: isHttp2 },
  { name: "a body far above the limit", request: atLimit(300_000), isTaken: isHttp2 },
  { name: "chunks above the limit", request: inChunks(atLimit(1)), isTaken: isHttp2 },
  { name: "chunks far above the limit", request: inChunks(atLimit(300_000)), isTaken: isHttp2 },
  { name: "chunks", request: inChunks(calling("ok")), isTaken: isHttp2 },
  { name: "slow pieces", request: inPieces },
  { name: "slow chunks", request: inChunks(inPieces), isTaken: isHttp2 },
  { name: "a body that is rejected", request: rejected(atLimit(-9)) },
  { name: "a large body that is rejected", request: rejected(atLimit(300_000)), isTaken: isHttp2 },
  { name: "a body of gzip", request: compressed("gzip", gzipSync), isTaken: never },
  { name: "a body of brotli", request: compressed("br", brotliCompressSync), isTaken: never },
];

function inChunks(request: Case["request"]): Case["request"] {
  return (way) => ({ ...request(way), isChunked: true });
}

function inPieces(way: Way): Omit<Request, "id"> {
  return { parts: pieces(bodyOf(way, { credential: "ok" }), 7) };
}

function rejected(request: Case["request"]): Case["request"] {
  return (way) => ({ ...request(way), headers: { authorization: "no" } });
}

function compressed(encoding: string, compress: (body: Buffer) => Buffer): Case["request"] {
  return (way) => ({
    headers: { "content-encoding": encoding },
    parts: [compress(bodyOf(way, { credential: "ok" }))],
  });
}

/** Returns a body that exceeds the limit of its RPC by that much. */
function atLimit(above: number): Case["request"] {
  return (way) => {
    const empty = bodyOf(way, { credential: "" }).length - (isGrpc(way) ? 5 : 0);
    const length = MAX_REQUEST_BYTES + above - empty - (isProto(way) ? 3 : 0);
    return { parts: [bodyOf(way, { credential: "a".repeat(length) })] };
  };
}

function pieces(bytes: Buffer, length: number): Buffer[] {
  const count = Math.ceil(bytes.length / length);
  return Array.from({ length: count }, (_, i) => bytes.subarray(i * length, (i + 1) * length));
}

const ABC = "\x00\x00\x00\x00\x05\x0a\x03abc";

const frames: Case[] = [
  ...[
    ["a lone frame header", ABC.slice(0, 5)],
    ["a part of a frame header", "\x00\x00"],
    ["a short message", ABC.slice(0, -1)],
    ["two messages", ABC + ABC],
    ["a message and a part of a frame header", `${ABC}\x00\x00`],
    ["a message and a short one", ABC + ABC.slice(0, -1)],
    ["a message and one that is too large", `${ABC}\x00\x7f\x00\x00\x00`],
    ["a message and a lone frame header", `${ABC}\x00\x00\x00\x00\x05`],
    ["a compressed message", `\x01${ABC.slice(1)}`],
    ["another flag", `\x02${ABC.slice(1)}`],
    ["a message that is too large", "\x00\x7f\x00\x00\x00abc"],
    ["a message with an extra byte", "\x00\x00\x00\x00\x06\x0a\x03abc\x07"],
    ["a malformed message and another", `\x00\x00\x00\x00\x02\x0a\x03${ABC}`],
  ].map(
    ([name = "", bytes = ""]): Case => ({
      name: `frames: ${name}`,
      request: sendingRaw(bytes),
      ways: (way) => isGrpc(way) && isProto(way),
    }),
  ),
];

const urls: Case[] = [
  ...["?a=1", "/"].map(
    (end): Case => ({
      name: `a path with ${end}`,
      request: (way) => ({ ...calling("ok")(way), path: pathWith(way, end) }),
      isTaken: never,
    }),
  ),
  ...["PUT", "GET", "DELETE"].map(
    (method): Case => ({ name: method, request: () => ({ method, parts: [] }), isTaken: never }),
  ),
];

const CREDENTIAL = { credential: "é", algorithm: "TOKEN_ALGORITHM_JWT" };

/** Other RPCs than verification of one credential. */
const rpcs = [
  of("a batch", batchVerifyApiKeys, { requests: [{ credential: "a" }, { credential: "b" }] }),
  of("a derivation", deriveToken, CREDENTIAL),
  of("a derivation with every field", deriveToken, {
    ...CREDENTIAL,
    ...{ ttl: "1h", scopes: ["a", "b"], audience: ["orders"], customClaims: { a: [-0, null, { b: "é\u2028" }] } },
  }),
  of("a derivation of no token", deriveToken, {}),
  of("a derivation with invalid scopes", deriveToken, { ...CREDENTIAL, scopes: ["a b"] }),
];

function of(name: string, method: DescMethodUnary, request: JsonObject): Case {
  return { name, request: (way) => ({ path: pathOf(way, method), parts: [bodyOf(way, request, method)] }) };
}

function pathWith(way: Way, suffix: string): string {
  return pathOf(way) + suffix;
}

export const CASES: readonly Case[] = [
  ...behaviours,
  ...admission,
  ...timeouts,
  ...headers,
  ...types,
  ...otherTypes,
  ...bodies,
  ...frames,
  ...urls,
  ...rpcs,
];

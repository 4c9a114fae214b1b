import { deflateRawSync, gzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { table, useService } from "../support/conformance.ts";
import { PREFACE } from "../support/http2-wire.ts";
import { paths } from "../support/rest.ts";
import { callGrpc, exchange, expectNoChanges, frame, RPCS, readConnectError, rpcPath, send } from "../support/wire.ts";

const suite = useService();
expectNoChanges(suite);

const { method: issued } = IssuedApiKeysService;
const CREATE = rpcPath(issued.createIssuedApiKey);
const GET = rpcPath(issued.getIssuedApiKey);
const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");

const POST = `POST ${paths.issued} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close`;
const KEY = '{"name":"a","actor_id":"a"}';

/** Invalid HTTP/1.1 requests and their status. */
const HTTP1: readonly (readonly [what: string, bytes: string, status: number])[] = [
  ["nothing but line breaks and a word", "\r\n\r\nhello\r\n\r\n", 400],
  ["an unknown version", `GET ${paths.issued} HTTP/9.9\r\nHost: localhost\r\n\r\n`, 400],
  ["an unknown method", `STEAL ${paths.issued} HTTP/1.1\r\nHost: localhost\r\n\r\n`, 400],
  ["a NUL in the path", `GET ${paths.issued}/\0 HTTP/1.1\r\nHost: localhost\r\n\r\n`, 400],
  ["a space in the path", `GET ${paths.issued}/a b HTTP/1.1\r\nHost: localhost\r\n\r\n`, 400],
  ["a byte beyond ASCII in the path", `GET ${paths.issued}/\xff HTTP/1.1\r\nHost: localhost\r\n\r\n`, 400],
  ["a header without a colon", `GET ${paths.issued} HTTP/1.1\r\nHost: localhost\r\nhello\r\n\r\n`, 400],
  ["a header name with a space", `GET ${paths.issued} HTTP/1.1\r\nHost: localhost\r\na b: c\r\n\r\n`, 400],
  ["a header with NUL", `GET ${paths.issued} HTTP/1.1\r\nHost: localhost\r\na: b\0c\r\n\r\n`, 400],
  ["no host", `GET ${paths.issued} HTTP/1.1\r\n\r\n`, 400],
  ["two lengths", `${POST}\r\nContent-Length: 27\r\nContent-Length: 28\r\n\r\n${KEY}`, 400],
  ["a length and chunked encoding", `${POST}\r\nContent-Length: 27\r\nTransfer-Encoding: chunked\r\n\r\n${KEY}`, 400],
  ["a negative length", `${POST}\r\nContent-Length: -1\r\n\r\n${KEY}`, 400],
  ["a length that is not a number", `${POST}\r\nContent-Length: 2a\r\n\r\n${KEY}`, 400],
  ["a length that overflows", `${POST}\r\nContent-Length: ${"9".repeat(40)}\r\n\r\n${KEY}`, 400],
  ["malformed chunks", `${POST}\r\nTransfer-Encoding: chunked\r\n\r\n${KEY}`, 400],
  ["a chunk of a wrong size", `${POST}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n${KEY}\r\n0\r\n\r\n`, 400],
  ["a chunk size that overflows", `${POST}\r\nTransfer-Encoding: chunked\r\n\r\n${"f".repeat(20)}\r\n`, 400],
  ["an unknown transfer coding", `${POST}\r\nTransfer-Encoding: gzip\r\n\r\n${KEY}`, 400],
  ["a TLS handshake", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400],
  [
    "a header of 20,000 bytes",
    `GET ${paths.issued} HTTP/1.1\r\nHost: localhost\r\na: ${"b".repeat(20_000)}\r\n\r\n`,
    431,
  ],
  ["an expectation", `${POST}\r\nExpect: a miracle\r\nContent-Length: 27\r\n\r\n${KEY}`, 417],
];

/** Node itself answers these, without a body. */
const WITHOUT_BODY = new Set(["no host", "an expectation"]);

test.each(table(HTTP1))("%s is refused over HTTP/1.1", async (what, bytes, status) => {
  const answer = await exchange(suite.server.address, bytes);
  expect(answer.slice(0, 12)).toBe(`HTTP/1.1 ${status}`);
  expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  if (WITHOUT_BODY.has(what)) return;
  const { error } = JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")));
  const reason = status === 431 ? "HEADER_TOO_LARGE" : "HTTP_MALFORMED";
  expect(error).toMatchObject({ code: status, status: "INVALID_ARGUMENT", details: [{ reason, domain: "keyhold" }] });
});

test.each(["hello\r\n\r\n", "INVALID CONNECTION PREFACE\r\n\r\n", "GET /\r\n", "EHLO a\n"])(
  "a connection that begins with %j, which names no version of HTTP, is closed without a response",
  async (bytes) => {
    expect(await exchange(suite.server.address, bytes)).toBe("");
  },
);

/** Incomplete requests. */
const HALVES = [
  "",
  "G",
  "GET / HTT",
  `GET ${paths.issued} HTTP/1.1\r\nHost: localhost\r\n`,
  `${POST}\r\nContent-Length: 100\r\n\r\n${KEY}`,
  "PRI * HTTP/2.0\r\n",
  `CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n`,
];

test.each(table(HALVES))("a connection that ends after %j is closed without a successful response", async (bytes) => {
  expect(await exchange(suite.server.address, bytes)).toMatch(/^(HTTP\/1\.1 40[05] |$)/);
});

const SETTINGS = hex("000000 04 00 00000000");

/** Bytes after the HTTP/2 preface (RFC 9113 §3.4). */
const HTTP2: readonly (readonly [what: string, bytes: Buffer])[] = [
  ["text", Buffer.from("hello, this is no frame of HTTP/2 at all")],
  ["zeros", Buffer.alloc(64)],
  ["ones", Buffer.alloc(64, 0xff)],
  ["an HTTP/1.1 request", Buffer.from(`GET ${paths.issued} HTTP/1.1\r\nHost: localhost\r\n\r\n`)],
  [
    "settings and a frame larger than the limit",
    Buffer.concat([SETTINGS, hex("ffffff 00 00 00000001"), Buffer.alloc(64)]),
  ],
  ["settings and invalid HPACK", Buffer.concat([SETTINGS, hex("000004 01 05 00000001 ffffffff")])],
  ["settings and data on a stream that is not open", Buffer.concat([SETTINGS, hex("000004 00 01 00000001 00000000")])],
  ["settings and headers on stream 0", Buffer.concat([SETTINGS, hex("000001 01 05 00000000 82")])],
  ["settings and headers without a path", Buffer.concat([SETTINGS, hex("000001 01 05 00000001 82")])],
  ["settings and half a header", Buffer.concat([SETTINGS, hex("000001 01 01 00000001 82")])],
  ["settings of a wrong length", hex("000005 04 00 00000000 0000000000")],
  ["settings with a window that is too large", hex("000006 04 00 00000000 0004 ffffffff")],
];

test.each(table(HTTP2))("the server survives %s after the HTTP/2 preface", async (_, bytes) => {
  const answer = await exchange(suite.server.address, Buffer.concat([PREFACE, bytes]));
  expect(answer).not.toMatch(/^HTTP\/1/);
});

/** Bytes instead of a message; two strings, `a` and `a`, would be 0a0161 120161. */
const PROTOBUF: readonly (readonly [what: string, bytes: Buffer<ArrayBuffer>])[] = [
  ["a varint that does not end", hex("ffffffffffffffffffffffff")],
  ["half a varint", hex("0a016112016180")],
  ["a truncated string", hex("0a2061")],
  ["a length of 4 GiB", hex("0affffffff0f61")],
  ["a negative length", hex("0affffffffffffffffff01")],
  ["field number 0", hex("020161")],
  ["wire type 6", hex("0e0161")],
  ["wire type 7", hex("0f0161")],
  ["a group without an end", hex("0b0a0161")],
  ["the end of a group without a start", hex("0c")],
  ["1000 nested groups", Buffer.alloc(1000, 0x7b)],
  ["text", Buffer.from("hello, this is no Protobuf")],
  ["JSON", Buffer.from(KEY)],
  ["gzip that is not declared", gzipSync(hex("0a0161120161"))],
];

test.each(table(PROTOBUF))("%s instead of a message is refused", async (_, bytes) => {
  const connect = await send(suite.server.url + CREATE, "POST", bytes, { "content-type": "application/proto" });
  const refused = { code: "invalid_argument", reason: "INVALID_ARGUMENT", fields: ["body"] };
  expect({ status: connect.status, ...readConnectError(connect) }).toEqual({ status: 400, ...refused });
  const grpc = await callGrpc(suite.server.url, CREATE, frame(bytes));
  expect(grpc).toMatchObject({ status: Code.InvalidArgument, reason: "INVALID_ARGUMENT", fields: ["body"] });
});

test.each(table(RPCS))("$name refuses invalid Protobuf", async (rpc) => {
  const bytes = hex("ffffffffffffffffffffffff");
  const connect = await send(suite.server.url + rpcPath(rpc), "POST", bytes, { "content-type": "application/proto" });
  expect([connect.status, readConnectError(connect).code]).toEqual([400, "invalid_argument"]);
  expect(await callGrpc(suite.server.url, rpcPath(rpc), frame(bytes))).toMatchObject({ status: Code.InvalidArgument });
});

const GOOD = hex("0a0161120161");

/** Bytes after the headers of a gRPC call. */
const FRAMES: readonly (readonly [what: string, bytes: Buffer, headers: Record<string, string>, status: Code])[] = [
  ["no message", Buffer.alloc(0), {}, Code.Unimplemented],
  ["half a frame header", hex("000000"), {}, Code.InvalidArgument],
  ["a frame header without a message", frame(Buffer.alloc(0), { length: 6 }), {}, Code.InvalidArgument],
  ["a truncated message", frame(GOOD, { length: 50 }), {}, Code.InvalidArgument],
  ["a message of 4 GiB", frame(GOOD, { length: 0xffffffff }), {}, Code.ResourceExhausted],
  ["two messages", Buffer.concat([frame(GOOD), frame(GOOD)]), {}, Code.Unimplemented],
  ["a message and a half", Buffer.concat([frame(GOOD), hex("0000")]), {}, Code.Unimplemented],
  ["compression that is not declared", frame(gzipSync(GOOD), { flags: 1 }), {}, Code.Internal],
  ["invalid gzip", frame(GOOD, { flags: 1 }), { "grpc-encoding": "gzip" }, Code.InvalidArgument],
  ["deflate for gzip", frame(deflateRawSync(GOOD), { flags: 1 }), { "grpc-encoding": "gzip" }, Code.InvalidArgument],
  [
    "a gzip bomb",
    frame(gzipSync(Buffer.alloc(200_000_000)), { flags: 1 }),
    { "grpc-encoding": "gzip" },
    Code.ResourceExhausted,
  ],
  ["an unknown compression", frame(GOOD, { flags: 1 }), { "grpc-encoding": "snappy" }, Code.Unimplemented],
  ["a malformed timeout", frame(GOOD), { "grpc-timeout": "soon" }, Code.InvalidArgument],
  ["invalid JSON", frame(Buffer.from('{"name":')), { "content-type": "application/grpc+json" }, Code.InvalidArgument],
];

test.each(table(FRAMES))("a gRPC call with %s is refused", async (_, bytes, headers, status) => {
  const answer = await callGrpc(suite.server.url, CREATE, bytes, headers);
  expect({ http: answer.http, status: answer.status }).toEqual({ http: 200, status });
});

const WEB = { "content-type": "application/grpc-web+proto" };

test.each(["", "00", "0000000005ffffffffff", "000000000a0a0161", "ff00000000"])(
  "a gRPC-Web call with the bytes %s is refused",
  async (bytes) => {
    const answer = await send(suite.server.url + CREATE, "POST", hex(bytes), WEB);
    expect(answer.text).toMatch(/grpc-status: (3|12|13)\r\n/);
  },
);

/** Queries of a Connect GET. */
const QUERIES: readonly (readonly [query: string, status: number])[] = [
  ["", 415],
  ["?encoding=xml&message=a", 415],
  ["?encoding=json&message=%7B", 400],
  ["?encoding=json&message=%00", 400],
  ["?encoding=json&message=%ff", 400],
  ["?encoding=json&message=!!!&base64=1", 400],
  ["?encoding=proto&message=!!!&base64=1", 400],
  ["?encoding=proto&message=_____w&base64=1", 400],
  ["?encoding=json&message=e30&base64=1&compression=gzip", 400],
  ["?encoding=json&message=%7B%22key_id%22:%7B%7D%7D", 400],
];

test.each(table(QUERIES))("a Connect GET with the query %s is refused", async (query, status) => {
  const answer = await send(suite.server.url + GET + query, "GET", undefined);
  expect([answer.status, answer.text]).toEqual([status, expect.stringMatching(/^\{.*\}$/)]);
});

test("a Connect call with a wrong method, content type, compression or timeout is refused", async () => {
  const ask = (method: string, headers: Record<string, string>) =>
    send(suite.server.url + CREATE, method, KEY, { "content-type": "application/json", ...headers });
  expect((await ask("PUT", {})).status).toBe(405);
  expect((await ask("DELETE", {})).status).toBe(405);
  expect((await ask("POST", { "content-type": "text/plain" })).status).toBe(415);
  expect((await ask("POST", { "content-type": "application/connect+json" })).status).toBe(415);
  expect((await ask("POST", { "content-encoding": "gzip" })).body.code).toBe("invalid_argument");
  expect((await ask("POST", { "content-encoding": "snappy" })).body.code).toBe("unimplemented");
  expect(readConnectError(await ask("POST", { "connect-timeout-ms": "soon" })).fields).toEqual(["timeout"]);
});

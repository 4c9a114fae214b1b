import { expect, test } from "vitest";
import { readHead } from "../../../../src/transport/fast-path/http1-message.ts";

const MAX = 200;

function read(lines: readonly string[], first = "POST /a?b HTTP/1.1") {
  return readHead(Buffer.from(`${[first, ...lines].join("\r\n")}\r\n\r\n`, "latin1"), MAX);
}

const HOST = "host: a";

test("a head is parsed", () => {
  const head = read(["Host: a:1", "Content-LENGTH:12 ", "x-a:  b c  ", "x-empty:"]);
  expect(head).toMatchObject({ target: "/a?b", contentLength: 12, size: 76 });
  expect(head).toHaveProperty("headers", { host: "a:1", "content-length": "12", "x-a": "b c", "x-empty": "" });
});

test("names of object members are ordinary header names", () => {
  const head = read([HOST, "constructor: a", "__proto__: b"]);
  const { headers } = typeof head === "string" ? { headers: {} } : head;
  expect(Object.keys(headers)).toEqual(["host", "constructor", "__proto__"]);
});

test("without Content-Length the body is empty, and keep-alive is the default", () => {
  expect(read([HOST, "Connection: Keep-Alive"])).toMatchObject({ contentLength: 0 });
});

test.each([
  ["two lengths", [HOST, "content-length: 1", "content-length: 1"]],
  ["two hosts", [HOST, HOST]],
  ["no host", ["x-a: 1"]],
  ["no field", []],
  ["chunks", [HOST, "transfer-encoding: chunked"]],
  ["chunks and a length", [HOST, "content-length: 1", "Transfer-Encoding: chunked"]],
  ["an expectation", [HOST, "expect: 100-continue"]],
  ["an upgrade", [HOST, "upgrade: websocket"]],
  ["the last request", [HOST, "connection: close"]],
  ["connection options", [HOST, "connection: keep-alive, upgrade"]],
  ["a length with a sign", [HOST, "content-length: +1"]],
  ["a length of two", [HOST, "content-length: 1, 1"]],
  ["an empty length", [HOST, "content-length:"]],
  ["a length in hexadecimal", [HOST, "content-length: 0x1"]],
  ["a length with a zero in front", [HOST, "content-length: 01"]],
  ["a length above a gigabyte", [HOST, "content-length: 1000000000"]],
  ["a folded line", [HOST, "x-a: 1", " 2"]],
  ["a space before the colon", [HOST, "x-a : 1"]],
  ["a line without a colon", [HOST, "x-a"]],
  ["no name", [HOST, ": 1"]],
  ["two connection fields", [HOST, "connection: keep-alive", "connection: keep-alive"]],
  ["two expectations", [HOST, "expect: 100-continue", "expect: 100-continue"]],
  ["a control character", [HOST, "x-a: \u0001"]],
  ["a delete", [HOST, "x-a: \u007f"]],
  ["a line folded by a tab", [HOST, "x-a: 1", "\t2"]],
  ["a byte above ASCII in a name", [HOST, "x\u00e9: 1"]],
  ["a line feed alone", [HOST, "x-a: 1\nx-b: 2"]],
  ["a carriage return alone", [HOST, "x-a: 1\rx-b: 2"]],
  ["more than is allowed", [HOST, `x-a: ${"a".repeat(MAX)}`]],
])("%s is left to Node", (_, lines) => {
  expect(read(lines)).toBe("other");
});

test.each([
  "TRACE / HTTP/1.1",
  "GETS / HTTP/1.1",
  "OPTIONS * HTTP/1.1",
  "CONNECT a:1 HTTP/1.1",
  "post / HTTP/1.1",
  "POST http://a/ HTTP/1.1",
  "POST  / HTTP/1.1",
  "POST /a b HTTP/1.1",
  "POST /\u00e9 HTTP/1.1",
  "POST / HTTP/1.0",
  "POST / HTTP/2.0",
  "POST /",
  "",
])("%j is left to Node", (first) => {
  expect(read([HOST], first)).toBe("other");
});

test("an incomplete head is awaited up to its maximum size", () => {
  const whole = Buffer.from(`POST / HTTP/1.1\r\n${HOST}\r\n\r\n`);
  for (let size = 1; size < whole.length; size++) expect(readHead(whole.subarray(0, size), MAX)).toBe("partial");
  expect(readHead(Buffer.from("POST /".padEnd(MAX - 1, "A")), MAX)).toBe("partial");
  expect(readHead(Buffer.from("POST /".padEnd(MAX, "A")), MAX)).toBe("other");
  for (const start of ["\r\n", "\u0016\u0003\u0001", " POST", "CONNECTS", "P*", "POST  "])
    expect(readHead(Buffer.from(start), MAX)).toBe("other");
});

test.each(["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])("%s is read", (method) => {
  expect(read([HOST], `${method} /a?b HTTP/1.1`)).toMatchObject({ method, target: "/a?b", contentLength: 0 });
});

test("fields may occur twice, and have tabs and bytes above ASCII", () => {
  const lines = [HOST, "X-A: 1", "x-a:\t2\t3 ", "x-b: \u00a0\u00e9\u00a0", "X-a:"];
  expect(read(lines)).toHaveProperty("headers", { host: "a", "x-a": ["1", "2\t3", ""], "x-b": "\u00a0\u00e9\u00a0" });
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { namesNoHttp, protocolOf } from "../../../src/transport/listener/acceptor.ts";
import { PREFACE } from "../../support/http2-wire.ts";

describe("the protocol of a connection's first bytes", () => {
  it("is undecided for every part of the preface, and HTTP/2 at its end", () => {
    expect(PREFACE).toHaveLength(24);
    for (let length = 0; length < 24; length++) expect(protocolOf(PREFACE.subarray(0, length))).toBeUndefined();
    expect(protocolOf(PREFACE)).toBe("http2");
  });

  it("is HTTP/2 for any bytes after the preface", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (rest) => {
        expect(protocolOf(Buffer.concat([PREFACE, rest]))).toBe("http2");
      }),
    );
  });

  it("is HTTP/1 from the first byte that differs, for any bytes after it", () => {
    fc.assert(
      fc.property(fc.nat(23), fc.integer({ min: 1, max: 255 }), fc.uint8Array(), (at, change, rest) => {
        const head = Buffer.concat([PREFACE.subarray(0, at + 1), rest]);
        head[at] = (head[at] ?? 0) ^ change;
        expect(protocolOf(head)).toBe("http1");
      }),
    );
  });
});

describe("a connection without a version of HTTP", () => {
  it("is detected by its first line when that is complete text", () => {
    expect(["hello\r\n", "hello\n", "GET /\r\nHTTP/1.1\r\n"].map(Buffer.from).map(namesNoHttp)).toEqual([
      true,
      true,
      true,
    ]);
  });

  it("is not one with HTTP, TLS, no bytes yet, or an empty line, which RFC 9112 §2.2 allows before a request", () => {
    const others = ["GET / HTTP/9.9\r\n", "\x16\x03\x01\x02\n", "hello", "\r\nhello\r\n", "", "\n"];
    for (const text of others) expect(namesNoHttp(Buffer.from(text)), text).toBe(false);
  });
});

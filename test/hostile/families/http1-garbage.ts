import { PREFACE } from "../../support/http2-wire.ts";
import type { Seeded } from "../../support/seeded.ts";

const POST = "POST /v2alpha1/admin/issuedApiKeys HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
const GET = "GET /v2alpha1/derivedKeys/jwks.json HTTP/1.1\r\nHost: localhost\r\n";

/** Bytes that are not a request, or that only some parsers accept as one. */
const GARBAGE: readonly string[] = [
  "BAD\r\n\r\n",
  "\r\n\r\n",
  "\n",
  "\0\0\0\0",
  "GET\r\n\r\n",
  "GET / HTTP/9.9\r\n\r\n",
  "GET / HTTP/0.9\r\n\r\n",
  "GET /\r\n",
  "GET / HTTP/1.1\r\n\r\n",
  "GET / HTTP/1.0\r\n\r\n",
  "get / HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "GET http://localhost/health/alive HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "PRI * HTTP/2.0\r\n\r\n",
  PREFACE.toString("latin1"),
  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
  `${GET}Host: localhost\r\n\r\n`,
  `${GET}Host: example.com\r\n\r\n`,
  `${GET} folded: a\r\n\r\n`,
  `${GET}No colon\r\n\r\n`,
  `${GET}Bad name: a\r\n\r\n`,
  `${GET}: a\r\n\r\n`,
  `${GET}X: a\rb\r\n\r\n`,
  `${GET}X: a\0b\r\n\r\n`,
  `${GET}X: \xe9\r\n\r\n`,
  `${GET}Content-Length: 5\r\n\r\nhello`,
  `${GET}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  `${GET}${"X: a\r\n".repeat(2_500)}\r\n`,
  `${GET}X: ${"a".repeat(17_000)}\r\n\r\n`,
  `GET /${"a".repeat(17_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  `GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  `GET /${"%41".repeat(300)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  `GET //health//alive HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  `GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  `GET /health/alive?${"a=b&".repeat(2_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  `${POST}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}`,
  `${POST}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
  `${POST}Content-Length: 2, 2\r\n\r\n{}`,
  `${POST}Content-Length: -1\r\n\r\n`,
  `${POST}Content-Length: +2\r\n\r\n{}`,
  `${POST}Content-Length: 0x2\r\n\r\n{}`,
  `${POST}Content-Length: 99999999999999999999\r\n\r\n{}`,
  `${POST}Content-Length: 2000000\r\n\r\n{}`,
  `${POST}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  `${POST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
  `${POST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
  `${POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
  `${POST}Transfer-Encoding: chunked\r\n\r\nX\r\n`,
  `${POST}Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n`,
  `${POST}Transfer-Encoding: chunked\r\n\r\n2\r\n{}X`,
  `${POST}Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n`,
  `${POST}Transfer-Encoding: chunked\r\n\r\n2;${"a".repeat(20_000)}\r\n{}\r\n0\r\n\r\n`,
  `${POST}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}`,
  `${POST}Transfer-Encoding: chunked\r\n\r\n${"2;a=b\r\n{}\r\n".repeat(200)}0\r\n\r\n`,
  `${POST}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: a\r\nContent-Length: 9\r\n\r\n`,
  `${POST}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n${"X: a\r\n".repeat(3_000)}\r\n`,
  `${POST}Content-Length: 2\r\n\r\n{}{}`,
  `${POST}\r\n{}`,
];

/** Chooses bytes, most of them malformed. */
export function chooseGarbage(random: Seeded): Buffer {
  if (random.below(8) !== 0) return Buffer.from(random.pick(GARBAGE), "latin1");
  return Buffer.from(Array.from({ length: 1 + random.below(200) }, () => random.below(256)));
}

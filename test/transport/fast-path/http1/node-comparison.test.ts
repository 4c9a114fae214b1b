import { expect, test } from "vitest";
import { type Seeded, seededBy } from "../../../support/seeded.ts";
import { conversation, startEcho } from "./support.ts";

/** The first is the usual one. */
const METHODS = ["POST", "POST", "GET", "DELETE", "PATCH", "HEAD", "get", "P(ST", ""] as const;
const TARGETS = ["/a", "/a", "/a", "/node", "/a?b=%2f", "/a#b", "/\u00e9", "/a b", "*", "http://h/a", ""] as const;
const VERSIONS = ["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "http/1.1", ""] as const;
const ODD_LINES = [
  "host: b",
  "Host : a",
  "connection: close",
  "connection: Keep-Alive",
  "connection: keep-alive, x",
  "transfer-encoding: chunked",
  "Transfer-Encoding: identity",
  "content-length: 3",
  "content-length: +3",
  "content-length: 3, 3",
  "content-length: 0x3",
  "content-length: 03",
  "content-length:",
  "expect: 100-continue",
  "upgrade: x",
  "x-a: 1",
  "x-a: 2",
  "X-A:\t3 ",
  "x-tab: a\tb",
  "x-byte: \u00e9",
  "x-nul: a\0b",
  "x-cr: a\rb",
  "x\u00e9: 1",
  " folded",
  ": no name",
  "no colon",
  "constructor: 2",
  "cookie: a",
  "cookie: b",
  "",
];
const BODIES = ["", "abc", "a\r\n\r\nb", "3\r\nabc\r\n0\r\n\r\n", "POST /a HTTP/1.1\r\nhost: c\r\n\r\n"] as const;

/** A mostly usual request, by default a `POST`. */
function request(seeded: Seeded, usual?: string): string {
  const isOdd = seeded.below(3) === 0;
  const odd = <T extends string>(items: readonly [T, ...T[]]) => (isOdd ? seeded.pick(items) : items[0]);
  const lines: string[] = Array.from({ length: isOdd ? seeded.below(3) : 0 }, () => seeded.pick(ODD_LINES));
  const body = seeded.pick(BODIES);
  const length = seeded.below(20) === 0 ? body.length + seeded.below(3) - 1 : body.length;
  if (body !== "" || seeded.below(2) === 0) lines.push(`Content-Length: ${Math.max(0, length)}`);
  if (seeded.below(20) !== 0) lines.push("Host:  localhost ");
  lines.push("x-b: !~ [\"'", "x-empty:");
  const end = seeded.below(40) === 0 ? "\n" : "\r\n";
  const first = `${usual ?? odd(METHODS)} ${odd(TARGETS)} ${odd(VERSIONS)}`;
  return `${[first, ...seeded.shuffled(lines)].join(end)}${end}${end}${body}`;
}

/** Mostly one request per segment; else several in one, or one in several. */
function parts(seeded: Seeded, methods: readonly string[] = []): Buffer[] {
  const one = () => request(seeded, methods[seeded.below(methods.length + 1)]);
  const requests = Array.from({ length: 1 + seeded.below(4) }, () => Buffer.from(one(), "latin1"));
  if (seeded.below(2) === 0) return requests;
  const all = Buffer.concat(requests);
  const cuts = Array.from({ length: seeded.below(4) }, () => seeded.below(all.length + 1)).toSorted((a, b) => a - b);
  return [0, ...cuts].map((from, i) => all.subarray(from, cuts[i])).filter(({ length }) => length > 0);
}

/**
 * On malformed input Node drops the responses that are not written yet; which ones depends on the read
 * boundaries. So only the responses before the refusal are compared, as far as both servers sent them.
 */
function isSame(seen: string, expected: string): boolean {
  const [ours = "", nodes = ""] = [seen, expected].map((text) => text.split("HTTP/1.1 400 ")[0]);
  if (ours === seen || nodes === expected) return seen === expected;
  return ours.startsWith(nodes) || nodes.startsWith(ours);
}

const OTHER_METHODS = ["GET", "GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"];

test("random input in random segments is answered byte for byte like by node:http", async () => {
  const seeded = seededBy("KEYHOLD_HTTP1_SEED");
  const [ours, node] = [await startEcho(), await startEcho({ front: false })];
  for (let round = 0; round < 1500; round++) {
    const sent = parts(seeded, round % 2 === 0 ? [] : OTHER_METHODS);
    const [seen, expected] = await Promise.all([conversation(ours.port, sent), conversation(node.port, sent)]);
    const same = isSame(seen, expected);
    expect({ same, sent: sent.map(String), seen, expected }).toMatchObject({ same: true });
  }
  // Otherwise this would compare node:http with itself.
  expect(ours.counts.front).toBeGreaterThan(450);
  expect(ours.counts.node).toBeGreaterThan(75);
});

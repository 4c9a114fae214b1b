import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { systemClock } from "../../lib/clock.ts";
import type { Headers } from "../wire/headers.ts";
import type { Answer } from "./call.ts";

export type Head = Readonly<Exclude<ReturnType<typeof readHead>, string>>;

const END = "\r\n\r\n";

/** A method, a target in origin form, and fields (RFC 9110 §5.5). */
const HEAD = new RegExp(
  "^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) /[!-~]* HTTP/1\\.1\\r\\n" +
    "(?:[\\w!#$%&'*+.^`|~-]+:[\\t -~\\x80-\\xff]*\\r\\n)+\\r\\n$",
);

/** How a head may begin. Anything else goes to Node at once: empty lines (RFC 9112 §2.2), TLS, noise. */
const START = /^[A-Z]{1,7}(?:$| (?:$|\/))/;
const MAX_START = "OPTIONS /".length;

/** Headers that change the framing or ask for an interim response. */
const FRAMING = ["transfer-encoding", "upgrade", "expect"] as const;

/**
 * Reads the head at the start of `bytes`. Returns "partial" while its end is missing, and "other" for everything that is not a request in
 * its most common form: Node's parser decides about that. The `size` of the head includes the empty line that ends it. `maxSize` in bytes.
 */
export function readHead(bytes: Buffer, maxSize: number) {
  const end = bytes.indexOf(END, 0, "latin1");
  if (end === -1) {
    const isHead = bytes.length < maxSize && START.test(bytes.toString("latin1", 0, MAX_START));
    return isHead ? "partial" : "other";
  }
  const size = end + END.length;
  const text = bytes.toString("latin1", 0, size);
  // `exec` with capture groups takes longer.
  if (size > maxSize || !HEAD.test(text)) return "other";
  const lineEnd = text.indexOf("\r\n");
  const headers = readFields(text, lineEnd + 2, end);
  const contentLength = lengthOf(headers);
  if (contentLength === undefined || !isPlain(headers)) return "other";
  const [method, target] = text.slice(0, lineEnd).split(" ", 2) as [string, string];
  return { method, target, headers, contentLength, size };
}

/** Names that occur several times have several values. */
function readFields(text: string, from: number, end: number): Headers {
  const fields: Record<string, string | string[]> = Object.create(null);
  for (let at = from; at < end; ) {
    const colon = text.indexOf(":", at);
    const lineEnd = text.indexOf("\r\n", colon);
    const name = text.slice(at, colon).toLowerCase();
    const value = trim(text, colon + 1, lineEnd);
    const before = fields[name];
    if (before === undefined) fields[name] = value;
    else fields[name] = typeof before === "string" ? [before, value] : [...before, value];
    at = lineEnd + 2;
  }
  return fields;
}

/** Returns the part of a text without spaces and tabs around it. `String.trim` removes other bytes too. */
function trim(text: string, start: number, end: number): string {
  let [from, to] = [start, end];
  while (from < to && isBlank(text.charCodeAt(from))) from++;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** Without Content-Length the body is empty (RFC 9112 §6.3). */
function lengthOf({ "content-length": length = "0" }: Headers): number | undefined {
  return typeof length === "string" && /^(?:0|[1-9]\d{0,8})$/.test(length) ? Number(length) : undefined;
}

/** Returns whether Node would keep the connection open, and its framing is that of `Content-Length`. */
function isPlain(headers: Headers): boolean {
  const { host, connection } = headers;
  if (typeof host !== "string" || FRAMING.some((name) => headers[name] !== undefined)) return false;
  return connection === undefined || (typeof connection === "string" && connection.toLowerCase() === "keep-alive");
}

let second = Number.NaN;
let date = "";

/**
 * Writes a response in one write (RFC 9112 §4), with the fields that `node:http` adds. `headers` include `content-length`. `idleSeconds`
 * limits the time until the next request; null closes the connection. Throws if a value contains a character that would end its field
 * (RFC 9110 §5.5).
 */
export function writeResponse(socket: Socket, { status, headers, body }: Answer, idleSeconds: number | null): void {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
  for (let i = 0; i + 1 < headers.length; i += 2) head += field(headers[i], headers[i + 1]);
  head += `Date: ${httpDate()}\r\n`;
  head += idleSeconds === null ? "Connection: close" : `Connection: keep-alive\r\nKeep-Alive: timeout=${idleSeconds}`;
  head += END;
  if (typeof body === "string") socket.write(head + body, Buffer.byteLength(body) === body.length ? "latin1" : "utf8");
  else socket.write(Buffer.concat([Buffer.from(head, "latin1"), body]));
}

/** RFC 9110 §5.6.7; formatted once a second. */
function httpDate(): string {
  const now = Math.floor(systemClock.now() / 1000);
  if (now !== second) {
    second = now;
    date = new Date(second * 1000).toUTCString();
  }
  return date;
}

const NOT_IN_A_VALUE = /[^\t -~]/;

function field(name = "", value = ""): string {
  if (NOT_IN_A_VALUE.test(value)) throw new Error(`the header ${name} has a value that cannot be sent`);
  return `${name}: ${value}\r\n`;
}

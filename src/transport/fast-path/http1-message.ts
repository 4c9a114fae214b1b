import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { systemClock } from "../../lib/clock.ts";
import type { Headers } from "../wire/headers.ts";
import type { Answer } from "./call.ts";

/** The head of a request (RFC 9112 §2.1). */
export interface Head {
  readonly method: string;
  /** In origin form (RFC 9112 §3.2.1). */
  readonly target: string;
  /** Names that occur several times have several values, unless the method is `POST`: then such a head is unusual. */
  readonly headers: Headers;
  /** Bytes of the body. */
  readonly contentLength: number;
  /** Bytes of the head, including the empty line that ends it. */
  readonly size: number;
}

const END = "\r\n\r\n";

/** `POST`, a target in origin form, and fields (RFC 9110 §5.5) with values of printable ASCII. */
const USUAL_POST = /^POST \/[!-~]* HTTP\/1\.1\r\n(?:[\w!#$%&'*+.^`|~-]+:[ -~]*\r\n)+\r\n$/;
/** The same in another method, with every value that a field may have: a gateway passes what its client has sent. */
const USUAL = /^[A-Z]+ \/[!-~]* HTTP\/1\.1\r\n(?:[\w!#$%&'*+.^`|~-]+:[\t -~\x80-\xff]*\r\n)+\r\n$/;

/** The first bytes of the requests that are read, of which everything else can be distinguished. */
export type Methods = readonly string[];

export const POST_ONLY: Methods = ["POST /"];
export const ANY_METHOD: Methods = ["GET /", "HEAD /", "POST /", "PUT /", "PATCH /", "DELETE /", "OPTIONS /"];

/** Headers that change the framing or ask for an interim response. */
const UNUSUAL = ["transfer-encoding", "upgrade", "expect"] as const;

/**
 * Reads the head at the start of `bytes`. Returns "partial" while its end is missing, and "unusual" for everything that is not a
 * request with one of the methods in its most common form: a complete parser decides about that. `maxSize` in bytes.
 */
export function readHead(bytes: Buffer, maxSize: number, methods: Methods = POST_ONLY): Head | "partial" | "unusual" {
  const start = methods.find((one) => startsWith(bytes, one));
  if (start === undefined) return "unusual";
  const end = bytes.indexOf(END, 0, "latin1");
  if (end === -1) return bytes.length < maxSize ? "partial" : "unusual";
  const size = end + END.length;
  const text = bytes.toString("latin1", 0, size);
  const method = start.slice(0, -2);
  const isPost = method === "POST";
  if (size > maxSize || !(isPost ? USUAL_POST : USUAL).test(text)) return "unusual";
  const lineEnd = text.indexOf("\r\n");
  const headers = readFields(text, lineEnd + 2, end, isPost);
  const contentLength = headers === undefined ? undefined : lengthOf(headers);
  if (headers === undefined || contentLength === undefined || !isUsual(headers)) return "unusual";
  const target = text.slice(start.length - 1, lineEnd - " HTTP/1.1".length);
  return { method, target, headers, contentLength, size };
}

/** Everything else goes to the complete parser at its first byte: other methods, empty lines (RFC 9112 §2.2), TLS, noise. */
function startsWith(bytes: Buffer, start: string): boolean {
  const length = Math.min(bytes.length, start.length);
  for (let i = 0; i < length; i++) if (bytes[i] !== start.charCodeAt(i)) return false;
  return true;
}

/** Returns undefined if a name is given twice and must not be: which of the two counts is not decided here. */
function readFields(text: string, from: number, end: number, isOnce: boolean): Headers | undefined {
  const fields: Record<string, string | string[]> = Object.create(null);
  for (let at = from; at < end; ) {
    const colon = text.indexOf(":", at);
    const lineEnd = text.indexOf("\r\n", colon);
    const name = text.slice(at, colon).toLowerCase();
    const value = trim(text, colon + 1, lineEnd);
    const known = fields[name];
    if (known === undefined) fields[name] = value;
    else if (isOnce) return undefined;
    else fields[name] = typeof known === "string" ? [known, value] : [...known, value];
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

function isUsual(headers: Headers): boolean {
  const { host, connection } = headers;
  if (typeof host !== "string" || UNUSUAL.some((name) => headers[name] !== undefined)) return false;
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
  if (typeof body === "string") socket.write(head + body, isAscii(body) ? "latin1" : "utf8");
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

function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}

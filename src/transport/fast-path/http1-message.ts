import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { systemClock } from "../../lib/clock.ts";
import type { Headers } from "../headers.ts";
import type { Answer } from "./call.ts";

/** The head of a `POST` request (RFC 9112 §2.1). */
export interface Head {
  /** In origin form (RFC 9112 §3.2.1). */
  readonly target: string;
  readonly headers: Headers;
  /** Bytes of the body. */
  readonly contentLength: number;
  /** Bytes of the head, including the empty line that ends it. */
  readonly size: number;
}

const START = "POST /";
const END = "\r\n\r\n";

/** `POST`, a target in origin form, and fields (RFC 9110 §5.5) with values of printable ASCII. */
const USUAL = /^POST \/[!-~]* HTTP\/1\.1\r\n(?:[\w!#$%&'*+.^`|~-]+:[ -~]*\r\n)+\r\n$/;

/** Headers that change the framing or ask for an interim response. */
const UNUSUAL = ["transfer-encoding", "upgrade", "expect"] as const;

/**
 * Reads the head at the start of `bytes`. Returns "partial" while its end is missing, and "unusual" for everything that is not a
 * `POST` in its most common form: a complete parser decides about that. `maxSize` in bytes.
 */
export function readHead(bytes: Buffer, maxSize: number): Head | "partial" | "unusual" {
  if (!startsAsPost(bytes)) return "unusual";
  const end = bytes.indexOf(END, 0, "latin1");
  if (end === -1) return bytes.length < maxSize ? "partial" : "unusual";
  const size = end + END.length;
  const text = bytes.toString("latin1", 0, size);
  if (size > maxSize || !USUAL.test(text)) return "unusual";
  const lineEnd = text.indexOf("\r\n");
  const headers = readFields(text, lineEnd + 2, end);
  const contentLength = headers === undefined ? undefined : lengthOf(headers);
  if (headers === undefined || contentLength === undefined || !isUsual(headers)) return "unusual";
  const target = text.slice(START.length - 1, lineEnd - " HTTP/1.1".length);
  return { target, headers, contentLength, size };
}

/** Everything else goes to the complete parser at its first byte: other methods, empty lines (RFC 9112 §2.2), TLS, noise. */
function startsAsPost(bytes: Buffer): boolean {
  const length = Math.min(bytes.length, START.length);
  for (let i = 0; i < length; i++) if (bytes[i] !== START.charCodeAt(i)) return false;
  return true;
}

/** Returns undefined if a name is given twice: which of the two counts is not decided here. */
function readFields(text: string, from: number, end: number): Headers | undefined {
  const fields: Record<string, string> = Object.create(null);
  for (let at = from; at < end; ) {
    const colon = text.indexOf(":", at);
    const lineEnd = text.indexOf("\r\n", colon);
    const name = text.slice(at, colon).toLowerCase();
    if (fields[name] !== undefined) return undefined;
    fields[name] = text.slice(colon + 1, lineEnd).trim();
    at = lineEnd + 2;
  }
  return fields;
}

/** Without Content-Length the body is empty (RFC 9112 §6.3). */
function lengthOf({ "content-length": length = "0" }: Headers): number | undefined {
  return typeof length === "string" && /^(?:0|[1-9]\d{0,8})$/.test(length) ? Number(length) : undefined;
}

function isUsual(headers: Headers): boolean {
  const { host, connection } = headers;
  if (host === undefined || UNUSUAL.some((name) => headers[name] !== undefined)) return false;
  return connection === undefined || String(connection).toLowerCase() === "keep-alive";
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

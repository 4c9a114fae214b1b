import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { systemClock } from "../../../lib/clock.ts";
import type { Answer } from "../route.ts";

/** Seconds that the connection may be idle, or that it closes. */
export type Persistence = number | "close";

let second = Number.NaN;
let date = "";

/**
 * Writes a response in one write (RFC 9112 §4), with the fields that `node:http` adds. `headers` include `content-length`. Throws if a
 * value contains a character that would end its field (RFC 9110 §5.5).
 */
export function writeResponse(socket: Socket, { status, headers, body }: Answer, persistence: Persistence): void {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
  for (let i = 0; i + 1 < headers.length; i += 2) head += field(headers[i], headers[i + 1]);
  head += `Date: ${httpDate()}\r\n`;
  head += persistence === "close" ? CLOSE : `Connection: keep-alive\r\nKeep-Alive: timeout=${persistence}\r\n\r\n`;
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

const CLOSE = "Connection: close\r\n\r\n";

const NOT_IN_A_VALUE = /[^\t -~]/;

function field(name = "", value = ""): string {
  if (NOT_IN_A_VALUE.test(value)) throw new Error(`the header ${name} has a value that cannot be sent`);
  return `${name}: ${value}\r\n`;
}

function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}

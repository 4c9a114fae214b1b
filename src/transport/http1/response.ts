import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../lib/clock.ts";

/** A response with all its header fields but those of the connection. */
export interface Http1Response {
  readonly status: number;
  /** Names and values by turns, with `content-length`. */
  readonly headers: readonly string[];
  readonly body: string | Uint8Array;
}

/** How the connection goes on: for how many seconds it may rest, or that it ends. */
export type Persistence = number | "close";

/** Writes responses in one piece each (RFC 9112 §4), with the fields that `node:http` adds. */
export class ResponseWriter {
  readonly #clock: Clock;
  #second = Number.NaN;
  #date = "";

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Throws if a value holds a character that would end its field (RFC 9110 §5.5). */
  write(socket: Socket, { status, headers, body }: Http1Response, persistence: Persistence): void {
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
    for (let i = 0; i + 1 < headers.length; i += 2) head += field(headers[i], headers[i + 1]);
    head += `Date: ${this.#httpDate()}\r\n`;
    head += persistence === "close" ? CLOSE : `Connection: keep-alive\r\nKeep-Alive: timeout=${persistence}\r\n\r\n`;
    if (typeof body === "string") socket.write(head + body, isAscii(body) ? "latin1" : "utf8");
    else socket.write(Buffer.concat([Buffer.from(head, "latin1"), body]));
  }

  /** RFC 9110 §5.6.7; another text once a second. */
  #httpDate(): string {
    const second = Math.floor(this.#clock.now() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#date = new Date(second * 1000).toUTCString();
    }
    return this.#date;
  }
}

const CLOSE = "Connection: close\r\n\r\n";

const NOT_IN_A_VALUE = /[^\t -~]/;

function field(name = "", value = ""): string {
  if (NOT_IN_A_VALUE.test(value)) throw new Error(`the value of the header ${name} cannot be sent`);
  return `${name}: ${value}\r\n`;
}

function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}

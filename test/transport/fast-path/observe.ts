import { type ClientHttp2Stream, connect as connectHttp2, constants, type OutgoingHttpHeaders } from "node:http2";
import { connect } from "node:net";
import { setImmediate } from "node:timers/promises";

/** One response as a client sees it, without values that differ between calls. */
export interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly trailers?: Readonly<Record<string, string>>;
  /** HTTP/2 only. */
  readonly resetCode?: number;
}

/**
 * Sends each part separately; returns all responses until the server closes the connection, oldest first. `isHead`: the first has no body,
 * whatever its length.
 */
export async function observeHttp1(
  port: number,
  parts: readonly (string | Uint8Array)[],
  isHead = false,
): Promise<Seen[]> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(Buffer.from(chunk))).on("error", () => {});
  const closed = new Promise((resolve) => socket.once("close", resolve));
  for (const part of parts) await sendAlone((done) => socket.write(part, done));
  await closed;
  return parseResponses(Buffer.concat(chunks), isHead);
}

/** Waits until the other side, in the same process, has read this part. */
async function sendAlone(write: (done: () => void) => void): Promise<void> {
  await new Promise<void>((resolve) => write(() => resolve()));
  for (let turn = 0; turn < 5; turn++) await setImmediate();
}

function parseResponses(bytes: Buffer, isHead: boolean): Seen[] {
  const seen: Seen[] = [];
  for (let rest = bytes; rest.length > 0; ) {
    const end = rest.indexOf("\r\n\r\n");
    if (end === -1) throw new Error(`no response: ${rest}`);
    const [first = "", ...lines] = rest.subarray(0, end).toString("latin1").split("\r\n");
    const headers = plain(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
    const isChunked = headers["transfer-encoding"] === "chunked";
    const content = rest.subarray(end + 4).toString("latin1");
    const { body, length } = isChunked
      ? readChunks(content)
      : readLength(content, isHead && seen.length === 0 ? "0" : headers["content-length"]);
    seen.push({ status: Number(first.split(" ")[1]), headers, body });
    rest = rest.subarray(end + 4 + length);
  }
  return seen;
}

function readLength(content: string, given = "0"): { body: string; length: number } {
  const length = Number(given);
  return { body: content.slice(0, length), length };
}

function readChunks(content: string): { body: string; length: number } {
  let body = "";
  for (let at = 0; ; ) {
    const start = content.indexOf("\r\n", at) + 2;
    const size = Number.parseInt(content.slice(at, start), 16);
    body += content.slice(start, start + size);
    at = start + size + 2;
    if (size === 0) return { body, length: at };
  }
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Removes values that differ between responses: the date, and generated request ids. */
function plain(fields: readonly (readonly [name: string, value: string])[] | readonly string[][]) {
  const all = fields.map(([name = "", value = ""]) => {
    const isVarying = /^date$/i.test(name) || UUID.test(value);
    return [name.toLowerCase(), isVarying ? "varies" : value] as const;
  });
  const sorted = all.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted);
}

/** Sends one HTTP/2 request; `meanwhile` may act on it once it is sent. */
export async function observeHttp2(
  url: string,
  headers: OutgoingHttpHeaders,
  parts: readonly (string | Uint8Array)[],
  meanwhile: (stream: ClientHttp2Stream) => Promise<void> = async () => {},
): Promise<Seen> {
  const session = connectHttp2(url);
  try {
    const stream = session.request({ ":method": "POST", ...headers }, parts.length > 0 ? { endStream: false } : {});
    const chunks: Uint8Array[] = [];
    let response: Record<string, string> = {};
    let trailers: Record<string, string> | undefined;
    stream.on("response", (fields) => {
      response = strings(fields);
    });
    stream.on("trailers", (fields) => {
      trailers = strings(fields);
    });
    stream.on("data", (chunk) => chunks.push(Buffer.from(chunk))).on("error", () => {});
    const closed = new Promise((resolve) => stream.once("close", resolve));
    for (const part of parts) await sendAlone((done) => stream.write(part, () => done()));
    await Promise.all([stream.end(), meanwhile(stream), closed]);
    const { ":status": status, ...rest } = response;
    const body = Buffer.concat(chunks).toString("latin1");
    const resetCode = stream.rstCode ?? constants.NGHTTP2_NO_ERROR;
    return { status: Number(status), headers: rest, body, resetCode, ...(trailers && { trailers }) };
  } finally {
    session.destroy();
  }
}

function strings(fields: object): Record<string, string> {
  return plain(Object.entries(fields).map(([name, value]) => [name, String(value)]));
}

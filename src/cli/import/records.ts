/* Runs in browsers too: the console imports files with it. */
import { invalidArgument } from "../../domain/errors.ts";
import { isJsonObject, type JsonObject, parseJson } from "../../lib/json.ts";
import { decodeUtf8 } from "../../lib/utf8.ts";

export interface Row {
  readonly row: number;
  /** Number of its first line, from 1. */
  readonly line: number;
  /** Byte offset after it, including the line feed. */
  readonly end: number;
  /** Its JSON members or CSV cells by column; or an error message, which must not quote the row: it contains a raw key. */
  readonly content: Readonly<JsonObject> | string;
}

/** Maximum size of a row in bytes, about 36 times the maximum size of a key's fields. */
export const MAX_ROW_BYTES = 1024 * 1024;

/** A record in the bytes that a format splits. */
export interface SplitRecord {
  /** Offset after it, including its line feed. */
  readonly end: number;
  /** Number of its line feeds. */
  readonly lines: number;
  /** Undefined if it is blank or the header, which is not a row. */
  readonly content: Row["content"] | undefined;
}

/**
 * Yields the complete records of a format at the start of `bytes`, which begin in `line`; the last one may lack its line feed if `isLast`.
 */
export type Format = (bytes: Uint8Array, isLast: boolean, line: number) => Iterable<SplitRecord>;

export const LINE_FEED = 10;

/** JSON Lines (jsonlines.org). */
export const jsonLines: Format = function* (bytes, isLast) {
  let start = 0;
  for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, start)) {
    yield { end: at + 1, lines: 1, content: jsonContent(bytes.subarray(start, at)) };
    start = at + 1;
  }
  if (isLast && start < bytes.length) {
    yield { end: bytes.length, lines: 0, content: jsonContent(bytes.subarray(start)) };
  }
};

/** Errors of `JSON.parse` are not used: they quote the text. */
function jsonContent(line: Uint8Array): Row["content"] | undefined {
  const text = decodeUtf8(line);
  if (text === undefined) return NOT_UTF8;
  if (text.trim() === "") return undefined;
  const json = parseJson(text);
  if (json === undefined) return "is not JSON";
  return isJsonObject(json) ? json : "is not a JSON object";
}

export const NOT_UTF8 = "is not UTF-8";

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** Reads the rows of a file, one array per chunk. An invalid record is a row with a message as its content. */
export async function* readRows(chunks: AsyncIterable<Uint8Array>, format: Format): AsyncGenerator<Row[]> {
  const take = recordReader(format);
  for await (const chunk of chunks) yield take(chunk);
  yield take(new Uint8Array(0), true);
}

/** Returns a function that takes the next bytes of a file and returns the rows that are complete with them. */
function recordReader(format: Format) {
  let rest: Uint8Array = new Uint8Array(0);
  /** Inside an oversized record, which is discarded up to its line feed. */
  let isSkipping = false;
  let [row, line, end] = [0, 1, 0];
  const add = (rows: Row[], record: SplitRecord) => {
    end += record.end;
    if (record.content !== undefined) rows.push({ row: ++row, line, end, content: record.content });
    line += record.lines;
  };
  /** Discards an oversized record up to its line feed. Returns the bytes after it. */
  const skip = (bytes: Uint8Array, isLast: boolean, rows: Row[]): Uint8Array => {
    const at = bytes.indexOf(LINE_FEED);
    isSkipping = at === -1 && !isLast;
    const length = at === -1 ? bytes.length : at + 1;
    if (isSkipping) end += length;
    else add(rows, { end: length, lines: 1, content: TOO_LONG });
    return bytes.subarray(length);
  };
  return (chunk: Uint8Array, isLast = false): Row[] => {
    let bytes = rest.length === 0 ? chunk : concat(rest, chunk);
    const rows: Row[] = [];
    if (end === 0) {
      rest = bytes;
      if (bytes.length < BYTE_ORDER_MARK.length && !isLast) return rows;
      rejectForeignText(bytes);
      if (BYTE_ORDER_MARK.every((byte, place) => bytes[place] === byte)) end = BYTE_ORDER_MARK.length;
      bytes = bytes.subarray(end);
    }
    if (isSkipping) bytes = skip(bytes, isLast, rows);
    let taken = 0;
    for (const record of format(bytes, isLast, line)) {
      const length = record.end - taken;
      add(rows, { ...record, end: length, content: length > MAX_ROW_BYTES ? TOO_LONG : record.content });
      taken = record.end;
    }
    rest = bytes.subarray(taken);
    if (rest.length > MAX_ROW_BYTES) rest = skip(rest, isLast, rows);
    return rows;
  };
}

function concat(first: Uint8Array, second: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}

const TOO_LONG = `has more than ${MAX_ROW_BYTES} bytes`;

const CARRIAGE_RETURN = 13;

/** Throws `INVALID_ARGUMENT` with the cause if the first bytes of a file are in an encoding or have line ends that cannot be read. */
function rejectForeignText(bytes: Uint8Array): void {
  const first = bytes.subarray(0, 2).join();
  if (first === "255,254" || first === "254,255" || /\b0\b/.test(first))
    throw invalidArgument("file", "is UTF-16; save it as UTF-8");
  const at = bytes.indexOf(CARRIAGE_RETURN);
  if (at !== -1 && at < bytes.length - 1 && !bytes.includes(LINE_FEED))
    throw invalidArgument("file", "has CR line endings; save it with LF or CRLF");
}

export function countLines(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) count++;
  return count;
}

export interface RowFailure {
  readonly row: Row;
  /** `INVALID_ARGUMENT`, `ALREADY_EXISTS` or `INTERNAL`. */
  readonly reason: string;
  readonly message: string;
}

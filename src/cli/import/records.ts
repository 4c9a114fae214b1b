import { decodeUtf8 } from "../../lib/bytes.ts";
import { isJsonObject, parseJson } from "../../lib/json.ts";

/** A row of the file. */
export interface Row {
  /** Row number from 1. */
  readonly row: number;
  /** Number of its first line, from 1. */
  readonly line: number;
  /** Byte offset after it, including the line feed, from which reading can resume. */
  readonly end: number;
  /** Number of the first line of the next row. */
  readonly nextLine: number;
  /** Its JSON members or CSV cells by column; or an error message, which must not quote the row: it contains a raw key. */
  readonly content: Readonly<Record<string, unknown>> | string;
}

/** A position in the file from which reading starts. */
export interface Position {
  readonly row: number;
  readonly line: number;
  readonly end: number;
}

export const START: Position = { row: 0, line: 1, end: 0 };

/** Maximum size of a row in bytes, about 36 times the maximum size of a key's fields. */
export const MAX_ROW_BYTES = 1024 * 1024;

/** How a format splits and parses records. */
export interface Format {
  /** Returns the offset of the line feed that ends the record at `start`, or -1 if it is incomplete. */
  endOf(bytes: Buffer, start: number): number;
  /** Parses a record without its line feed; undefined if it is blank, which is not a row. */
  contentOf(text: string): Row["content"] | undefined;
}

export const LINE_FEED = 10;

/** JSON Lines (jsonlines.org). Errors of `JSON.parse` are not used: they quote the text. */
export const jsonLines: Format = {
  endOf: (bytes, start) => bytes.indexOf(LINE_FEED, start),
  contentOf: (text) => {
    if (text.trim() === "") return undefined;
    const json = parseJson(text);
    if (json === undefined) return "is not JSON";
    return isJsonObject(json) ? json : "is not a JSON object";
  },
};

const BYTE_ORDER_MARK = Buffer.from("\uFEFF");

/** Reads the rows of a file from a position, one array per chunk. An invalid record is a row with a message as its content. */
export async function* readRows(chunks: AsyncIterable<Buffer>, format: Format, from: Position): AsyncGenerator<Row[]> {
  const records = new Records(format, from);
  for await (const chunk of chunks) yield records.take(chunk);
  yield records.finish();
}

class Records {
  readonly #format: Format;
  #rest: Buffer = Buffer.alloc(0);
  /** Inside an oversized record, which is discarded up to its line feed. */
  #isSkipping = false;
  #row: number;
  #line: number;
  #end: number;

  constructor(format: Format, { row, line, end }: Position) {
    this.#format = format;
    this.#row = row;
    this.#line = line;
    this.#end = end;
  }

  take(chunk: Buffer): Row[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const rows: Row[] = [];
    let start = 0;
    for (let end = this.#endOf(bytes, 0); end !== -1; end = this.#endOf(bytes, start)) {
      this.#add(rows, bytes.subarray(start, end + 1));
      start = end + 1;
    }
    this.#rest = bytes.subarray(start);
    if (this.#rest.length > MAX_ROW_BYTES) this.#skip();
    return rows;
  }

  /** Ends the input. The last record may lack a line feed. */
  finish(): Row[] {
    const rows: Row[] = [];
    if (this.#rest.length > 0 || this.#isSkipping) this.#add(rows, this.#rest);
    return rows;
  }

  #endOf(bytes: Buffer, start: number): number {
    return this.#isSkipping ? bytes.indexOf(LINE_FEED, start) : this.#format.endOf(bytes, start);
  }

  #skip(): void {
    this.#isSkipping = true;
    this.#end += this.#rest.length;
    this.#line += countLines(this.#rest);
    this.#rest = Buffer.alloc(0);
  }

  #add(rows: Row[], record: Buffer): void {
    const content = this.#contentOf(this.#end === 0 ? withoutMark(record) : record);
    this.#isSkipping = false;
    this.#end += record.length;
    const nextLine = this.#line + countLines(record);
    if (content !== undefined) rows.push({ row: ++this.#row, line: this.#line, end: this.#end, nextLine, content });
    this.#line = nextLine;
  }

  #contentOf(record: Buffer): Row["content"] | undefined {
    if (this.#isSkipping || record.length > MAX_ROW_BYTES) return TOO_LONG;
    const text = decodeUtf8(record);
    return text === undefined ? "is not UTF-8" : this.#format.contentOf(text.replace(/\r?\n$/, ""));
  }
}

const TOO_LONG = `has more than ${MAX_ROW_BYTES} bytes`;

function withoutMark(record: Buffer): Buffer {
  const { length } = BYTE_ORDER_MARK;
  return record.subarray(0, length).equals(BYTE_ORDER_MARK) ? record.subarray(length) : record;
}

function countLines(record: Buffer): number {
  let count = 0;
  for (let at = record.indexOf(LINE_FEED); at !== -1; at = record.indexOf(LINE_FEED, at + 1)) count++;
  return count;
}

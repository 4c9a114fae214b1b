import { checkHeader, PLAIN_ROWS, type RowOptions } from "./fields.ts";
import { type Format, LINE_FEED, type Row } from "./records.ts";

const QUOTE = 34;
const COMMA = 44;

/**
 * CSV (RFC 4180). Not a library: resuming needs the byte offset after every row, including invalid ones, and error messages must not quote
 * the row.
 */
export class Csv implements Format {
  /** Undefined until the header is read. */
  columns: readonly string[] | undefined;

  readonly #rows: RowOptions;

  /** Without columns the first record is the header. */
  constructor(columns?: readonly string[], rows: RowOptions = PLAIN_ROWS) {
    this.columns = columns;
    this.#rows = rows;
  }

  /** A quote opens a cell only at its start (RFC 4180 §2). */
  endOf(bytes: Buffer, start: number): number {
    let isQuoted = false;
    let isCellStart = true;
    for (let at = start; at < bytes.length; at++) {
      const byte = bytes[at];
      if (isQuoted) {
        if (byte !== QUOTE) continue;
        if (bytes[at + 1] === QUOTE) at++;
        else isQuoted = false;
      } else {
        if (byte === LINE_FEED) return at;
        if (byte === QUOTE && isCellStart) isQuoted = true;
      }
      isCellStart = byte === COMMA;
    }
    return -1;
  }

  /** Throws `INVALID_ARGUMENT` on an unusable header. */
  contentOf(text: string): Row["content"] | undefined {
    if (text === "") return undefined;
    const cells = cellsOf(text);
    const { columns } = this;
    if (columns === undefined) {
      this.columns = cells ?? [];
      checkHeader(this.columns, this.#rows);
      return undefined;
    }
    if (cells === undefined) return "has a misplaced or unterminated quote";
    if (cells.length !== columns.length) return `has ${cells.length} cells for ${columns.length} columns`;
    return Object.fromEntries(columns.map((column, place) => [column, cells[place]]));
  }
}

/** Returns the cells of a record; undefined on a syntax error. */
function cellsOf(text: string): string[] | undefined {
  const cell = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;
  const cells: string[] = [];
  for (;;) {
    const [, quoted, plain = "", separator] = cell.exec(text) ?? [];
    if (separator === undefined) return undefined;
    cells.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (separator === "") return cells;
  }
}

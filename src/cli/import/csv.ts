import { invalidArgument } from "../../domain/errors.ts";
import { type Format, LINE_FEED } from "./records.ts";
import { FIELDS, METADATA_COLUMN, REQUIRED_FIELDS } from "./request.ts";
import type { Row } from "./row.ts";

const QUOTE = 34;
const COMMA = 44;

/**
 * CSV (RFC 4180). It is read here and not by a library since an import that goes on needs the byte behind every row, bad ones
 * too, and errors that quote nothing.
 */
export class Csv implements Format {
  #columns: readonly string[] | undefined;

  /** Without columns, the first record is the header. */
  constructor(columns?: readonly string[]) {
    this.#columns = columns;
  }

  /** Undefined as long as the header was not read. */
  get columns(): readonly string[] | undefined {
    return this.#columns;
  }

  endOf(bytes: Buffer, start: number): number {
    return endOfRecord(bytes, start);
  }

  /** Throws `INVALID_ARGUMENT` where the header does not name what is needed. */
  contentOf(text: string): Row["content"] | undefined {
    if (text === "") return undefined;
    const cells = cellsOf(text);
    if (this.#columns === undefined) {
      this.#columns = requireColumns(cells ?? []);
      return undefined;
    }
    if (cells === undefined) return "has a quote where none may be, or one that is not closed";
    return this.#byColumn(this.#columns, cells);
  }

  #byColumn(columns: readonly string[], cells: readonly string[]): Row["content"] {
    if (cells.length !== columns.length) return `has ${cells.length} cells for ${columns.length} columns`;
    return Object.fromEntries(columns.map((column, place) => [column, cells[place]]));
  }
}

/** No column is quoted: where the header is missing, there stands a raw key. */
function requireColumns(columns: readonly string[]): readonly string[] {
  const unknown = columns.findIndex((column) => !FIELDS.has(column) && !METADATA_COLUMN.test(column));
  if (unknown !== -1) {
    const known = [...FIELDS].join(", ");
    throw invalidArgument("header", `its column ${unknown + 1} is none of ${known} and metadata.<key>`);
  }
  const missing = REQUIRED_FIELDS.find((field) => !columns.includes(field));
  if (missing !== undefined) throw invalidArgument("header", `has no column ${missing}`);
  if (new Set(columns).size < columns.length) throw invalidArgument("header", "has a column twice");
  return columns;
}

/** The line feed that is within no quotes. A quote opens a cell only where the cell begins (RFC 4180 §2). */
function endOfRecord(bytes: Buffer, start: number): number {
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

/** The cells of a record; undefined where it breaks the grammar. */
export function cellsOf(text: string): string[] | undefined {
  const cell = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;
  const cells: string[] = [];
  for (;;) {
    const [, quoted, plain = "", separator] = cell.exec(text) ?? [];
    if (separator === undefined) return undefined;
    cells.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (separator === "") return cells;
  }
}

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

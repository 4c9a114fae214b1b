/** A row of the file, as a reader found it. */
export interface Row {
  /** Its place among the rows, from 1. */
  readonly row: number;
  /** The line that it begins in, from 1. */
  readonly line: number;
  /** The byte of the file behind it, line end included: where reading may go on. */
  readonly end: number;
  /** The line that the next row begins in. */
  readonly nextLine: number;
  /** The members of its JSON, or its cells by column; or why there are none, in words that quote nothing: there is a raw key in it. */
  readonly content: Readonly<Record<string, unknown>> | string;
}

/** Where a reader begins, or goes on. */
export interface Position {
  readonly row: number;
  readonly line: number;
  readonly end: number;
}

export const BEGINNING: Position = { row: 0, line: 1, end: 0 };

/** The most bytes of a row: three dozen times what the largest fields of a key can have. */
export const MAX_ROW_BYTES = 1024 * 1024;

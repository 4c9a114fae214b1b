import { isUtf8 } from "node:buffer";
import { CsvError, type Info, type Options, parse } from "csv-parse/sync";
import { invalidArgument } from "../../domain/errors.ts";
import { type Column, cellProblem, columnsOf, type Span, swallowed } from "./cells.ts";
import { checkHeader, PLAIN_ROWS, type RowOptions } from "./fields.ts";
import { countLines, type Format, LINE_FEED, MAX_ROW_BYTES, NOT_UTF8, type Row, type SplitRecord } from "./records.ts";

const QUOTE = 34;
const COMMA = 44;

const OPTIONS: Options = { record_delimiter: ["\r\n", "\n"], relax_column_count: true };

/** CSV (RFC 4180), parsed up to the last line feed that has been read. Messages of csv-parse are not used: they quote cells. */
export class Csv implements Format {
  readonly #rows: RowOptions;
  /** Undefined until the header is read. */
  #columns: readonly Column[] | undefined;

  constructor(rows: RowOptions = PLAIN_ROWS) {
    this.#rows = rows;
  }

  /** Throws `INVALID_ARGUMENT` on an unusable header, and on a quote that is not closed. */
  *split(bytes: Buffer, isLast: boolean, line: number): Generator<SplitRecord> {
    const complete = isLast ? bytes : bytes.subarray(0, bytes.lastIndexOf(LINE_FEED) + 1);
    let [start, firstLine] = [0, line];
    const record = (end: number, cells?: readonly string[]): SplitRecord => {
      const own = complete.subarray(start, end);
      const lines = countLines(own);
      const span = { firstLine, lastLine: firstLine + Math.max(lines, 1) - 1 };
      [start, firstLine] = [end, firstLine + lines];
      if (cells === undefined) return { end, lines, content: `has a misplaced quote${swallowed(span)}` };
      return { end, lines, content: isUtf8(own) ? this.#contentOf(cells, span) : NOT_UTF8 };
    };
    while (start < complete.length) {
      const { records, problem } = parseFrom(complete, start);
      for (const { end, cells } of records) yield record(end, cells);
      if (problem === undefined) return;
      if (problem.isUnclosed) {
        if (!isLast && bytes.length - start <= MAX_ROW_BYTES) return;
        const opened = firstLine + countLines(complete.subarray(start, problem.cell));
        const where = isLast ? "is never closed" : `is not closed within ${MAX_ROW_BYTES} bytes`;
        throw invalidArgument("file", `line ${opened} opens a quote that ${where}`);
      }
      yield record(endOfLine(complete, problem.cell));
    }
  }

  #contentOf(cells: readonly string[], span: Span): Row["content"] | undefined {
    if (cells.every((cell) => cell.trim() === "")) return undefined;
    const columns = this.#columns;
    if (columns === undefined) {
      checkHeader(cells, this.#rows);
      this.#columns = columnsOf(cells, this.#rows);
      return undefined;
    }
    if (cells.length !== columns.length)
      return `has ${cells.length} cells for ${columns.length} columns${swallowed(span)}`;
    const row: Record<string, string> = {};
    for (const [place, column] of columns.entries()) {
      const cell = cells[place] ?? "";
      const problem = cellProblem(cell, column, span);
      if (problem !== undefined) return problem;
      row[column.name] = cell;
    }
    return row;
  }
}

/** Parses until a misplaced quote. `cell` is the offset of the cell with it, or of the comma before. */
function parseFrom(bytes: Buffer, start: number) {
  const records: { readonly end: number; readonly cells: readonly string[] }[] = [];
  const on_record = (cells: string[], { bytes: end }: Info) => {
    records.push({ end: start + end, cells });
    return null;
  };
  try {
    parse(bytes.subarray(start), { ...OPTIONS, on_record });
    return { records };
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const problem = { isUnclosed: error.code === "CSV_QUOTE_NOT_CLOSED", cell: start + Number(error.bytes) };
    return { records, problem };
  }
}

/** Returns the offset after the line with the misplaced quote of a cell, up to which nothing is a row. */
function endOfLine(bytes: Buffer, cell: number): number {
  const first = bytes[cell] === COMMA ? cell + 1 : cell;
  let at = bytes.indexOf(QUOTE, first);
  if (at === first) {
    at = bytes.indexOf(QUOTE, at + 1);
    while (bytes[at + 1] === QUOTE) at = bytes.indexOf(QUOTE, at + 2);
  }
  const end = bytes.indexOf(LINE_FEED, at);
  return end === -1 ? bytes.length : end + 1;
}

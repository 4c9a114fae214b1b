import { CsvError, type Info, type Options, parse } from "csv-parse/sync";
import { invalidArgument } from "../../domain/errors.ts";
import { redactName } from "../../lib/redact-name.ts";
import { decodeUtf8 } from "../../lib/utf8.ts";
import { checkHeader, metadataKey, type RowOptions } from "./fields.ts";
import { countLines, type Format, LINE_FEED, MAX_ROW_BYTES, NOT_UTF8, type Row, type SplitRecord } from "./records.ts";

const QUOTE = 34;
const COMMA = 44;

const OPTIONS: Options = { record_delimiter: ["\r\n", "\n"], relax_column_count: true };

/**
 * Returns the format CSV (RFC 4180), parsed up to the last line feed that has been read. Messages of csv-parse are not used: they quote
 * cells. It throws `INVALID_ARGUMENT` on a quote that is not closed, and `check` on an unusable header. Runs in browsers too.
 */
export function csvFormat(rows: RowOptions, check = checkHeader): Format {
  /** Undefined until the header is read. */
  let columns: readonly Column[] | undefined;
  const contentOf = (cells: readonly string[], joined: string): Row["content"] | undefined => {
    if (cells.every((cell) => cell.trim() === "")) return undefined;
    if (columns !== undefined) return rowOf(cells, columns, joined);
    check(cells, rows);
    columns = columnsOf(cells, rows);
    return undefined;
  };
  return function* (bytes, isLast, line) {
    const complete = isLast ? bytes : bytes.subarray(0, bytes.lastIndexOf(LINE_FEED) + 1);
    let [start, firstLine] = [0, line];
    const record = (end: number, cells?: readonly string[]): SplitRecord => {
      const own = complete.subarray(start, end);
      const lines = countLines(own);
      const joined = lines > 1 ? linesJoined(firstLine, firstLine + lines - 1) : "";
      [start, firstLine] = [end, firstLine + lines];
      if (cells === undefined) return { end, lines, content: `has a misplaced quote${joined}` };
      return { end, lines, content: decodeUtf8(own) === undefined ? NOT_UTF8 : contentOf(cells, joined) };
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
  };
}

/** Returns the end of a message about a record of several lines. */
function linesJoined(first: number, last: number): string {
  return `: a quote joins lines ${first} to ${last} into one row; none of these lines is imported`;
}

/** Returns the cells of a row by column, or why they are invalid. */
function rowOf(cells: readonly string[], columns: readonly Column[], joined: string): Row["content"] {
  if (cells.length !== columns.length) return `has ${cells.length} cells for ${columns.length} columns${joined}`;
  const row: Record<string, string> = {};
  for (const [place, column] of columns.entries()) {
    const cell = cells[place] ?? "";
    const problem = cellProblem(cell, column, joined);
    if (problem !== undefined) return problem;
    row[column.name] = cell;
  }
  return row;
}

/** Parses until a misplaced quote. `cell` is the offset of the cell with it, or of the comma before. */
function parseFrom(bytes: Uint8Array, start: number) {
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
function endOfLine(bytes: Uint8Array, cell: number): number {
  const first = bytes[cell] === COMMA ? cell + 1 : cell;
  let at = bytes.indexOf(QUOTE, first);
  if (at === first) {
    at = bytes.indexOf(QUOTE, at + 1);
    while (bytes[at + 1] === QUOTE) at = bytes.indexOf(QUOTE, at + 2);
  }
  const end = bytes.indexOf(LINE_FEED, at);
  return end === -1 ? bytes.length : end + 1;
}

type Column = ReturnType<typeof columnsOf>[number];

function columnsOf(header: readonly string[], { columns }: RowOptions) {
  return header.map((name, before) => {
    const field = columns === null ? name : Object.keys(columns).find((candidate) => columns[candidate] === name);
    // Only metadata and columns that are not imported may have cells with line breaks.
    const isMultiline = field === undefined || field === "metadata" || metadataKey(field) !== undefined;
    // A spreadsheet must not have changed its cells.
    const isIdentifier = field !== undefined && IDENTIFIERS.has(field);
    const position = { before, after: header.length - before - 1 };
    return { name, label: redactName(field ?? name), isMultiline, isIdentifier, ...position };
  });
}

const IDENTIFIERS: ReadonlySet<string> = new Set([
  "raw_key",
  "hash",
  "phc",
  "raw_key_hash.value",
  "raw_key_hash.phc",
  "lookup_prefix",
  "actor_id",
]);

/** Returns why a cell cannot be what its author meant, without quoting it; undefined if it can. */
function cellProblem(cell: string, column: Column, joined: string): string | undefined {
  if (/[\r\n]/.test(cell) && !(column.isMultiline && !hasRows(cell, column)))
    return `${column.label}: contains a line break${joined}`;
  if (column.isIdentifier && cell.length <= MAX_SPREADSHEET && OF_SPREADSHEET.test(cell))
    return `${column.label}: was reformatted by a spreadsheet, as in 7.39E+07; export the column as text`;
  return undefined;
}

/**
 * Whether a stray quote may have swallowed rows up to the next one: the cell begins with the rest of its row and ends with the beginning of
 * another, or has a line that could be a row.
 */
function hasRows(cell: string, { before, after }: Column): boolean {
  const [first = 0, ...others] = cell.split(/\r\n?|\n/).map((line) => line.split(",").length - 1);
  return (first >= after && (others.at(-1) ?? 0) >= before) || others.some((commas) => commas >= before + after);
}

/** Characters of a number with separators or an error; a safe bound. */
const MAX_SPREADSHEET = 40;

/** A number in scientific notation or with separators, an error such as `#REF!`, `####` of a narrow column, or a date. */
const OF_SPREADSHEET =
  /^(?:[+-]?\d(?:[.,]\d+)?E[+-]\d{2,3}|-?\d{1,3}(?:[,'\u2019\u00A0\u202F ]\d{3})+(?:\.\d+)?|-?\d{1,3}(?:\.\d{3}){2,}|#[A-Z/\d]+[!?]|#N\/A|#+|\d\d?-[A-Z][a-z]{2}(?:-\d\d)?)$/;

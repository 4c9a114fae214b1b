import { redactName } from "../../lib/redact-name.ts";
import { metadataKey, type RowOptions } from "./fields.ts";

/** A column of a CSV file. */
export interface Column {
  readonly name: string;
  /** The field, or the name of the column if it is not imported, for messages. */
  readonly label: string;
  /** Whether its cells may have line breaks: only metadata, and columns that are not imported. */
  readonly isMultiline: boolean;
  /** Whether a spreadsheet must not have changed its cells. */
  readonly isIdentifier: boolean;
  /** Numbers of columns before and after it. */
  readonly before: number;
  readonly after: number;
}

export function columnsOf(header: readonly string[], { columns }: RowOptions): Column[] {
  return header.map((name, before) => {
    const field = columns === null ? name : Object.keys(columns).find((candidate) => columns[candidate] === name);
    const isMultiline = field === undefined || field === "metadata" || metadataKey(field) !== undefined;
    const position = { before, after: header.length - before - 1 };
    const isIdentifier = field !== undefined && IDENTIFIERS.has(field);
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

/** The lines of a record. */
export interface Span {
  readonly firstLine: number;
  readonly lastLine: number;
}

/** Returns the end of a message that names the lines of a record, if a quote has joined several. */
export function swallowed({ firstLine, lastLine }: Span): string {
  return lastLine === firstLine
    ? ""
    : `: a quote makes lines ${firstLine} to ${lastLine} one row, and none is imported`;
}

/** Returns why a cell cannot be what its author meant, without quoting it; undefined if it can. */
export function cellProblem(cell: string, column: Column, span: Span): string | undefined {
  if (/[\r\n]/.test(cell) && !(column.isMultiline && !hasRows(cell, column)))
    return `${column.label}: contains a line break${swallowed(span)}`;
  if (column.isIdentifier && cell.length <= MAX_SPREADSHEET && OF_SPREADSHEET.test(cell))
    return `${column.label}: is what a spreadsheet has made of it, such as 7.39E+07; export the column as text`;
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

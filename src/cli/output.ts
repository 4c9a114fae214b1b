import { styleText } from "node:util";
import { systemClock } from "../lib/clock.ts";
import type { JsonObject, JsonValue } from "../lib/json.ts";

export interface OutputOptions {
  readonly json?: boolean;
  /** The field of which only the value is printed. */
  readonly output?: string;
}

/** Text for people. Styles are shown on terminals with colours. */
export type Text = string | Styled | readonly Text[];

export interface Styled {
  readonly text: string;
  readonly style: Style;
}

export type Style = "bold" | "dim" | "green" | "yellow" | "red" | "erased";

/** Erases the line of the cursor of a terminal. */
export const ERASE_LINE: Styled = { text: "", style: "erased" };

/** Maximum characters of a table cell; JSON output has the whole value. */
const MAX_CELL = 60;

/**
 * Writes text; resolves when it is flushed. Everything that the command prints passes through here: only line feeds and our own styles
 * reach a terminal as control characters. Exits 0 on EPIPE, as when piped to `head`.
 */
export function write(text: Text, stream: NodeJS.WriteStream = process.stdout): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(render(text, stream), (error) => {
      if (error === null || error === undefined) resolve();
      else if ("code" in error && error.code === "EPIPE") process.exit(0);
      else reject(error);
    });
  });
}

export function note(text: Text): void {
  void write([text, "\n"], process.stderr);
}

function render(text: Text, stream: NodeJS.WriteStream): string {
  if (typeof text === "string") return escapeControls(text);
  if (!("style" in text)) return text.map((part) => render(part, stream)).join("");
  if (text.style === "erased") return stream.isTTY ? "\r\x1b[K" : "";
  const escaped = escapeControls(text.text);
  // Node regards `NO_COLOR` and `TERM`.
  const hasColors = stream.isTTY && stream.hasColors();
  return hasColors ? styleText(text.style, escaped, { validateStream: false }) : escaped;
}

/** Control and format characters, with which untrusted text could manipulate the terminal. */
const CONTROLS = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

function escapeControls(text: string): string {
  return text.replace(CONTROLS, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** Escapes them within JSON, whose value stays the same. */
export function escapeInJson(json: string): string {
  const escapeUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return json.replace(CONTROLS, (character) => character.split("").map(escapeUnit).join(""));
}

/** Returns one line of JSON for any reader, also a terminal. */
export function jsonText(value: JsonValue): string {
  return escapeInJson(JSON.stringify(value));
}

export function writeJson(value: JsonValue): Promise<void> {
  return write(`${jsonText(value)}\n`);
}

/** Writes a result: JSON, or a line of text for people. */
export function writeResult({ json }: OutputOptions, value: JsonValue, text: Text): Promise<void> {
  return json === true ? writeJson(value) : write([text, "\n"]);
}

/** Writes non-empty fields for people, one per line. */
export function writeFields(fields: JsonObject, stream: NodeJS.WriteStream = process.stdout): Promise<void> {
  const rows = Object.entries(fields).map(([name, value]) => {
    const text = displayValue(value);
    const relative = stream.isTTY && isTime(name, value) ? ` (${relativeTime(value, systemClock.now())})` : "";
    return [name, name === "status" ? stateCell(text) : text + relative];
  });
  return write(tableText(rows.filter(([, value]) => textOf(value) !== "")), stream);
}

/** Writes one object: JSON in the format of REST, or its fields for people. */
export function writeObject(json: JsonObject, options: OutputOptions): Promise<void> {
  return options.json === true ? writeJson(json) : writeFields(json);
}

export type Cell = string | Styled;

/** Returns a table with aligned columns, below their titles if there are any. `widths` keeps the least widths for the rows that follow. */
export function tableText(
  cells: readonly (readonly Cell[])[],
  titles?: readonly string[],
  widths: number[] = [],
): Text {
  const rows = titles === undefined ? cells : [titles.map((text): Styled => ({ text, style: "bold" })), ...cells];
  for (const row of rows)
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, textOf(cell).length);
  return rows.map((row) => {
    const last = row.findLastIndex((cell) => textOf(cell) !== "");
    const padding = (column: number) => "".padEnd((widths[column] ?? 0) - textOf(row[column]).length + 2);
    return [row.slice(0, last + 1).map((cell, column) => [cell, column === last ? "" : padding(column)]), "\n"];
  });
}

function textOf(cell: Cell = ""): string {
  return typeof cell === "string" ? cell : cell.text;
}

/** Formats the cell of a field: a time is relative on a terminal, and a status has a colour. */
export function fieldCell(field: string, value: unknown): Cell {
  if (process.stdout.isTTY && isTime(field, value)) return relativeTime(value, systemClock.now());
  const text = displayValue(value);
  const shown = text.length > MAX_CELL ? `${text.slice(0, MAX_CELL - 1)}…` : text || "-";
  return field === "status" || field === "result" ? stateCell(shown) : shown;
}

const STATE_STYLES: Readonly<Record<string, Style>> = {
  ACTIVE: "green",
  PASS: "green",
  live: "green",
  DISABLED: "yellow",
  EXPIRED: "yellow",
  gone: "yellow",
  REVOKED: "red",
  FAIL: "red",
};

export function stateCell(text: string): Cell {
  const style = STATE_STYLES[text];
  return style === undefined ? text : { text, style };
}

function isTime(field: string, value: unknown): value is string {
  return field.endsWith("_time") && typeof value === "string" && value !== "";
}

const UNITS = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
] as const;

/**
 * Returns an RFC 3339 time relative to `now`, Unix time in milliseconds.
 *
 * @example relativeTime("2030-01-04T00:00:00Z", Date.parse("2030-01-01T00:00:00Z")); // "in 3 days"
 */
export function relativeTime(time: string, now: number): string {
  const seconds = (Date.parse(time) - now) / 1000;
  const [unit, size] = UNITS.find(([, least]) => Math.abs(seconds) >= least) ?? (["second", 1] as const);
  return new Intl.RelativeTimeFormat("en").format(Math.round(seconds / size), unit);
}

/** Formats a value of a record for people, on one line. */
export function displayValue(value: unknown): string {
  return onOneLine(plainText(value));
}

function plainText(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return value.map(plainText).join(" ");
  if (typeof value !== "object") return String(value).replace(ENUM_PREFIX, "");
  return Object.entries(value)
    .map(([name, inner]) => `${name}=${typeof inner === "string" ? inner : JSON.stringify(inner)}`)
    .join(" ");
}

/** Returns text that cannot forge a line or a cell of its own. */
export function onOneLine(text: string): string {
  return escapeControls(text).replaceAll("\n", "\\u{a}");
}

const ENUM_PREFIX =
  /^(?:KEY_STATUS|KEY_KIND|REVOCATION_REASON|CREDENTIAL_TYPE|VERIFICATION_ERROR|VERIFICATION_CHECK|CHECK_RESULT|HASH_ALGORITHM)_(?=[A-Z_\d]+$)/;

import { styleText } from "node:util";
import type { JsonObject, JsonValue } from "../lib/json.ts";

/** Options of every command with output. */
export interface OutputOptions {
  readonly json?: boolean;
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

/** Writes a line for people to stderr. */
export function note(text: Text): void {
  void write([text, "\n"], process.stderr);
}

function render(text: Text, stream: NodeJS.WriteStream): string {
  if (typeof text === "string") return escapeControls(text);
  if (!("style" in text)) return text.map((part) => render(part, stream)).join("");
  if (text.style === "erased") return stream.isTTY ? "\r\x1b[K" : "";
  const escaped = escapeControls(text.text);
  return hasColors(stream) ? styleText(text.style, escaped, { validateStream: false }) : escaped;
}

/** Node's answer, which regards `NO_COLOR` and `TERM`. */
function hasColors(stream: NodeJS.WriteStream): boolean {
  return stream.isTTY && stream.hasColors();
}

/** Control and format characters, with which untrusted text could manipulate the terminal. */
const CONTROLS = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

function escapeControls(text: string): string {
  return text.replace(CONTROLS, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** Escapes them within JSON, whose value stays the same. */
export function escapeInJson(json: string): string {
  return json.replace(CONTROLS, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}

/** Returns one line of JSON for any reader, also a terminal. */
export function jsonText(value: JsonValue): string {
  return escapeInJson(JSON.stringify(value));
}

/** Writes one line of JSON. */
export function writeJson(value: JsonValue): Promise<void> {
  return write(`${jsonText(value)}\n`);
}

/** Writes a result: JSON, or a line of text for people. */
export function writeResult({ json }: OutputOptions, value: JsonValue, text: Text): Promise<void> {
  return json === true ? writeJson(value) : write([text, "\n"]);
}

/** Writes non-empty fields for people, one per line. */
export function writeFields(fields: JsonObject, stream: NodeJS.WriteStream = process.stdout): Promise<void> {
  const rows = Object.entries(fields).map(([name, value]) => [name, displayValue(value)]);
  return write(tableText(rows.filter(([, text]) => text !== "")), stream);
}

/** Writes one object: JSON in the format of REST, or its fields for people. */
export function writeObject(json: JsonObject, options: OutputOptions): Promise<void> {
  return options.json === true ? writeJson(json) : writeFields(json);
}

/** Returns a table with aligned columns. */
export function tableText(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const padded = rows.map((row) => row.map((text, column) => text.padEnd(widths[column] ?? 0)));
  return padded.map((cells) => `${cells.join("  ").trimEnd()}\n`).join("");
}

/** Formats a table cell. */
export function cell(value: unknown): string {
  const text = displayValue(value);
  return text.length > MAX_CELL ? `${text.slice(0, MAX_CELL - 1)}…` : text || "-";
}

/** Formats a value of a record for people, on one line. */
function displayValue(value: unknown): string {
  return onOneLine(textOf(value));
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return value.map(textOf).join(" ");
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

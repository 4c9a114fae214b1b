import type { JsonObject, JsonValue } from "../lib/json.ts";

/** Options of every command with output. */
export interface OutputOptions {
  readonly json?: boolean;
}

/** Maximum characters of a table cell; JSON output has the whole value. */
const MAX_CELL = 60;

/** Writes text; resolves when it is flushed. Exits 0 on EPIPE, as when piped to `head`. */
export function write(text: string, stream: NodeJS.WriteStream = process.stdout): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => {
      if (error === null || error === undefined) resolve();
      else if ("code" in error && error.code === "EPIPE") process.exit(0);
      else reject(error);
    });
  });
}

/** Writes one line of JSON. */
export function writeJson(value: JsonValue): Promise<void> {
  return write(`${JSON.stringify(value)}\n`);
}

/** Writes a result: JSON, or a line of text for people. */
export function writeResult({ json }: OutputOptions, value: JsonValue, text: string): Promise<void> {
  return json === true ? writeJson(value) : write(`${text}\n`);
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

/** Formats a value of a record for people. */
function displayValue(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return value.map(displayValue).join(" ");
  if (typeof value !== "object") return escapeControls(String(value).replace(ENUM_PREFIX, ""));
  return Object.entries(value)
    .map(
      ([name, inner]) =>
        `${escapeControls(name)}=${typeof inner === "string" ? escapeControls(inner) : JSON.stringify(inner)}`,
    )
    .join(" ");
}

const ENUM_PREFIX =
  /^(?:KEY_STATUS|KEY_KIND|REVOCATION_REASON|CREDENTIAL_TYPE|VERIFICATION_ERROR|VERIFICATION_CHECK|CHECK_RESULT|HASH_ALGORITHM)_(?=[A-Z_\d]+$)/;

/** Escapes control and format characters, with which untrusted text could manipulate the terminal. */
function escapeControls(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u{${character.codePointAt(0)?.toString(16)}}`;
  });
}

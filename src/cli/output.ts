import type { JsonValue } from "../lib/json.ts";

/** Of every command that has an output. */
export interface OutputOptions {
  readonly json?: boolean;
}

/** The most characters of a cell of a table; all of it is in the JSON. */
const MAX_CELL = 60;

/** Writes a text and resolves when it is handed on. Who reads may go, as `head` does: then the command ends, without failure. */
export function write(text: string, stream: NodeJS.WriteStream = process.stdout): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => {
      if (error === null || error === undefined) resolve();
      else if ("code" in error && error.code === "EPIPE") process.exit(0);
      else reject(error);
    });
  });
}

/** One JSON value on a line of its own. */
export function writeJson(value: JsonValue): Promise<void> {
  return write(`${JSON.stringify(value)}\n`);
}

/** Names and values for people, one a line. What is empty is left out. */
export function writeFields(fields: JsonValue, stream: NodeJS.WriteStream = process.stdout): Promise<void> {
  const rows = Object.entries(Object(fields)).flatMap(([name, value]) => {
    const text = shownValue(value);
    return text === "" ? [] : [[name, text]];
  });
  const width = Math.max(0, ...rows.map(([name = ""]) => name.length));
  return write(
    rows.map(([name = "", value = ""]) => `${`${name.padEnd(width)}  ${value}`.trimEnd()}\n`).join(""),
    stream,
  );
}

/** Lines of columns as wide as the widest text of each. */
export function tableText(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map(
      (row) =>
        `${row
          .map((text, column) => text.padEnd(widths[column] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}

/** A value in a cell of a table. */
export function cell(value: unknown): string {
  const text = shownValue(value);
  return text.length > MAX_CELL ? `${text.slice(0, MAX_CELL - 1)}…` : text || "-";
}

/** A value of a record as people read it. */
export function shownValue(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return value.map(shownValue).join(" ");
  if (typeof value !== "object") return shownText(String(value).replace(ENUM_PREFIX, ""));
  return Object.entries(value)
    .map(
      ([name, inner]) => `${shownText(name)}=${typeof inner === "string" ? shownText(inner) : JSON.stringify(inner)}`,
    )
    .join(" ");
}

const ENUM_PREFIX = /^(?:KEY_STATUS|REVOCATION_REASON|CREDENTIAL_TYPE|VERIFICATION_ERROR)_(?=[A-Z_]+$)/;

/** What others wrote, without the characters by which it could move the cursor or turn the text of a terminal. */
export function shownText(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u{${character.codePointAt(0)?.toString(16)}}`;
  });
}

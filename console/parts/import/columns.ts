import { FIELDS, type HashDefaults, isField, KEYS, type RowOptions } from "../../../src/cli/import/fields.ts";
import { redactName } from "../../../src/lib/redact-name.ts";

/** What a column of the file is: a field, `""` if it is not imported, and null while that is not decided. */
export type Meaning = string | null;

/** The columns of a file in their order, and what is the same for all hashes. */
export interface Columns {
  readonly header: readonly string[];
  readonly meanings: readonly Meaning[];
  readonly hash: HashDefaults;
}

/** Recognizes the columns that `keyhold keys import` imports by their names. The others are for the person to decide. */
export function recognize(header: readonly string[]): Columns {
  return { header, meanings: header.map((name) => (isField(name) ? name : null)), hash: {} };
}

/** Returns the names of columns to show. If none is a field, the file may have no header, and its first line has a raw key. */
export function shownNames({ header }: Columns): readonly string[] {
  return header.some(isField) ? header : header.map((name) => redactName(name));
}

/** Fields that have no form as text. */
const NOT_TEXT: readonly string[] = ["raw_key_hash", "rate_limits", "quotas"];

/** Returns the fields that a column may be beside its own entry of the metadata: those that no other column is. */
export function choicesOf({ meanings }: Columns, column: number): readonly string[] {
  const isFree = (field: string) => meanings[column] === field || !meanings.includes(field);
  const own = meanings[column] ?? "";
  return [...new Set([...FIELDS.filter((field) => !NOT_TEXT.includes(field) && isFree(field)), own])].filter(Boolean);
}

/** What is missing before the file can be read. */
export type Missing = "key" | "name" | "actor_id" | "columns" | "algorithm" | "encoding";

export function missingOf({ meanings, hash }: Columns): readonly Missing[] {
  const has = (...fields: readonly string[]) => fields.some((field) => meanings.includes(field));
  const missing: [boolean, Missing][] = [
    [!has(...KEYS), "key"],
    [!has("name"), "name"],
    [!has("actor_id"), "actor_id"],
    [meanings.includes(null), "columns"],
    [needs("algorithm", meanings) && hash.algorithm === undefined, "algorithm"],
    [needs("encoding", meanings) && hash.encoding === undefined, "encoding"],
  ];
  return missing.flatMap(([isMissing, what]) => (isMissing ? [what] : []));
}

/** Whether the hashes need an option that is the same for all of them, since no column has it. */
export function needs(option: "algorithm" | "encoding", meanings: readonly Meaning[]): boolean {
  const hasHash = meanings.includes("hash") || meanings.includes("raw_key_hash.value");
  return hasHash && !meanings.includes(`raw_key_hash.${option}`);
}

/** Returns how the command would be told of these columns: `--map` and the options of hashes. */
export function rowOptions({ header, meanings, hash }: Columns): RowOptions {
  const columns = meanings.flatMap((field, index) => (field ? [[field, header[index] ?? ""] as const] : []));
  return { columns: Object.fromEntries(columns), hash };
}

import type { DescMessage } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  CreateImportedApiKeyRequestSchema,
  RawKeyHashSchema,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { invalidArgument } from "../../domain/errors.ts";
import type { JsonValue } from "../../lib/json.ts";
import { redactName } from "../../lib/redact-name.ts";

/**
 * The fields of a row: those of CreateImportedApiKeyRequest, except what the import sets itself, and short names of hashes. The fields of
 * `raw_key_hash` may be columns too, such as `raw_key_hash.algorithm`.
 */
export const FIELDS: readonly string[] = [
  ...new Set(["raw_key", "hash", "phc", ...namesIn(CreateImportedApiKeyRequestSchema)]),
].filter((name) => name !== "request_id" && name !== "allow_weak");

const HASH_COLUMNS = namesIn(RawKeyHashSchema).map((name) => `raw_key_hash.${name}`);

function namesIn({ fields }: DescMessage): string[] {
  return fields.map(({ name }) => name);
}

/** A CSV column for one metadata entry; an empty cell is no entry. */
const METADATA_COLUMN = /^metadata\.(.+)$/s;

/** The error in a failure file. It is ignored in a corrected row. */
export const ERROR_FIELD = "import_error";

/** The columns by the fields that they contain, such as `name` → `label`. Other columns are then ignored. Null: columns are named like fields. */
export type ColumnMap = Readonly<Record<string, string>> | null;

/** What is stated once for all hashes, by the fields of `raw_key_hash`; a row may state another value. */
export interface HashDefaults {
  readonly algorithm?: string | undefined;
  readonly encoding?: string | undefined;
  readonly prefix?: string | undefined;
  readonly suffix?: string | undefined;
  readonly hmac_key_id?: string | undefined;
}

/** The algorithms without a salt. A hash with a salt states its algorithm itself. */
export const HASH_ALGORITHM_NAMES = ["sha256", "sha384", "sha512", "sha512-256", "hmac-sha256", "hmac-sha512"] as const;
export const HASH_ENCODING_NAMES = ["hex", "base64", "base64url"] as const;

export interface RowOptions {
  readonly columns: ColumnMap;
  readonly hash: HashDefaults;
  readonly adoptBeforeTime?: Timestamp | undefined;
  /** Whether raw keys may have fewer than 8 characters. */
  readonly allowWeak?: boolean | undefined;
}

export type Fields = Readonly<Record<string, JsonValue | undefined>>;

/** Throws `INVALID_ARGUMENT` if a field of `--map` does not exist, or a required one is missing. */
export function checkColumnMap({ columns, hash }: RowOptions): void {
  if (columns === null) return;
  const fields = Object.keys(columns);
  const unknown = fields.find((field) => !isField(field));
  if (unknown !== undefined)
    throw invalidArgument("--map", `unknown field "${redactName(unknown, FIELDS)}"; ${ALLOWED}`);
  requireFields(fields, "--map", "does not include");
  requireHashOptions(fields, hash);
}

/** Returns the fields of a row. Throws `INVALID_ARGUMENT` on an unknown one. */
export function fieldsOf(content: Fields, columns: ColumnMap): Fields {
  if (columns !== null) {
    return Object.fromEntries(Object.entries(columns).map(([field, column]) => [field, content[column]]));
  }
  const { [ERROR_FIELD]: _, ...fields } = content;
  const unknown = Object.keys(fields).find((name) => !isField(name));
  if (unknown !== undefined) throw invalidArgument(redactName(unknown, FIELDS), `is an unknown field; ${ALLOWED}`);
  return fields;
}

/** Throws `INVALID_ARGUMENT` unless the columns of a file are usable. Never quotes a column: without a header it would be a raw key. */
export function checkHeader(header: readonly string[], { columns, hash }: RowOptions): void {
  checkHeaderForm(header);
  if (columns === null) {
    const unknown = header.findIndex((column) => !isField(column));
    if (unknown !== -1) throw invalidArgument("header", `unknown column ${unknown + 1}; ${ALLOWED}, or use --map`);
    requireFields(header, "header", "has no column");
    requireHashOptions(header, hash);
    return;
  }
  const missing = Object.values(columns).find((column) => !header.includes(column));
  if (missing !== undefined) throw invalidArgument("header", `has no column "${redactName(missing)}" listed in --map`);
}

/** Throws `INVALID_ARGUMENT` on a header with other separators than commas, or with two columns of one name. */
export function checkHeaderForm(header: readonly string[]): void {
  const [separator] = header.length === 1 ? (/[;\t|]/.exec(header[0] ?? "") ?? []) : [];
  if (separator !== undefined)
    throw invalidArgument("header", `columns are separated by ${SEPARATORS[separator]}; use commas instead`);
  if (new Set(header).size < header.length) throw invalidArgument("header", "has a duplicate column");
}

const SEPARATORS: Readonly<Record<string, string>> = { ";": "semicolons", "\t": "tabs", "|": "vertical bars" };

/** Returns the key of a metadata column; undefined for another column. */
export function metadataKey(field: string): string | undefined {
  return METADATA_COLUMN.exec(field)?.[1];
}

/** Whether a column of this name is imported without `--map`. */
export function isField(name: string): boolean {
  return FIELDS.includes(name) || HASH_COLUMNS.includes(name) || METADATA_COLUMN.test(name);
}

const ALLOWED = `allowed: ${FIELDS.join(", ")}, raw_key_hash.<field>, metadata.<key>`;

/** A file must have at least one of these columns. */
export const KEYS = ["raw_key", "hash", "phc", "raw_key_hash", "raw_key_hash.value", "raw_key_hash.phc"];

function requireFields(names: readonly string[], where: string, problem: string): void {
  if (!KEYS.some((key) => names.includes(key))) throw invalidArgument(where, `${problem} raw_key, hash or phc`);
  const missing = ["name", "actor_id"].find((field) => !names.includes(field));
  if (missing !== undefined) throw invalidArgument(where, `${problem} ${missing}`);
}

/** The algorithm is usually that of all rows. Without it, each row would be a failure. */
function requireHashOptions(fields: readonly string[], { algorithm, encoding }: HashDefaults): void {
  if (!fields.includes("hash") && !fields.includes("raw_key_hash.value")) return;
  if (algorithm === undefined && !fields.includes("raw_key_hash.algorithm"))
    throw invalidArgument("--hash-algorithm", "is required for the hash column; it is not detected automatically");
  if (encoding === undefined && !fields.includes("raw_key_hash.encoding"))
    throw invalidArgument("--hash-encoding", "is required for the hash column; it is not detected automatically");
}

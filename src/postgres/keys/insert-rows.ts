import type { NewKey } from "../../keys/ports.ts";
import { hex, writeArray } from "../connection/array-types.ts";
import { type StoredLimit, type StoredQuota, toStoredLimit, toStoredQuota } from "./stored-limits.ts";

/** A new row of `api_keys` by column, with JSON values. */
export type NewRow = { readonly [C in keyof typeof NEW_ROW_TYPES]: NewValue } & {
  readonly key_id: string;
  readonly digest: string;
  readonly request_id: string | null;
};
type NewValue =
  | string
  | number
  | null
  | readonly string[]
  | Readonly<Record<string, string>>
  | readonly OtherDigest[]
  | readonly StoredLimit[]
  | readonly StoredQuota[];

/** A digest under another root secret (migration 0006). */
interface OtherDigest {
  /** Hexadecimal. */
  readonly digest: string;
  readonly digest_key_id: string;
}

/** The columns of a new row with their types, in the order of the statements. */
export const NEW_ROW_TYPES = {
  key_id: "uuid",
  kind: "text",
  name: "text",
  actor_id: "text",
  scopes: "text[]",
  metadata: "jsonb",
  hint: "text",
  create_time: "timestamptz",
  update_time: "timestamptz",
  expire_time: "timestamptz",
  allowed_cidrs: "text[]",
  restricted_to_actor_ids: "text[]",
  rate_limits: "jsonb",
  quotas: "jsonb",
  created_by: "text",
  digest: "bytea",
  digest_key_id: "text",
  other_digests: "jsonb",
  hash_algorithm: "text",
  hash_scheme_id: "integer",
  hash_parameters: "text",
  hash_prefix_length: "smallint",
  adopt_before_time: "timestamptz",
  adopted_expire_time: "timestamptz",
  request_id: "text",
  request_fingerprint: "bytea",
} as const;

export const NEW_ROW_COLUMNS = Object.keys(NEW_ROW_TYPES);

/** The same as a column definition list of a function that returns records. */
export const NEW_ROW_DEFINITION = Object.entries(NEW_ROW_TYPES)
  .map((column) => column.join(" "))
  .join(", ");

/**
 * Returns the rows of keys ordered by digest, because two statements that insert equal digests in different orders would deadlock. Keys
 * of one request stay together, in their order, at the place of the first.
 */
export function toNewRows(keys: readonly NewKey[]): NewRow[] {
  const firsts = new Map<string, string>();
  const placed = keys.map((key) => {
    const row = toNewRow(key);
    if (row.request_id === null) return { row, place: row.digest };
    const place = firsts.get(row.request_id) ?? row.digest;
    firsts.set(row.request_id, place);
    return { row, place };
  });
  return placed.sort((a, b) => (a.place < b.place ? -1 : a.place > b.place ? 1 : 0)).map(({ row }) => row);
}

function toNewRow({ key, digest, otherDigests, hash, request }: NewKey): NewRow {
  const created = key.createTime.toISOString();
  const others = [...otherDigests, ...(hash?.lookup?.digests ?? [])];
  return {
    key_id: key.keyId,
    kind: key.kind,
    name: key.name,
    actor_id: key.actorId,
    scopes: key.scopes,
    metadata: key.metadata,
    hint: key.hint,
    create_time: created,
    update_time: created,
    expire_time: key.expireTime?.toISOString() ?? null,
    allowed_cidrs: key.allowedCidrs,
    restricted_to_actor_ids: key.restrictedToActorIds,
    rate_limits: key.rateLimits?.map(toStoredLimit) ?? null,
    quotas: key.quotas?.map(toStoredQuota) ?? null,
    created_by: key.createdBy,
    digest: bytea(digest.digest),
    digest_key_id: digest.keyId,
    other_digests:
      others.length === 0 ? null : others.map(({ keyId, digest }) => ({ digest: hex(digest), digest_key_id: keyId })),
    hash_algorithm: key.hashAlgorithm,
    hash_scheme_id: hash?.schemeId ?? null,
    hash_parameters: hash?.parameters ?? null,
    hash_prefix_length: hash?.lookup?.length ?? null,
    adopt_before_time: key.adoptBeforeTime?.toISOString() ?? null,
    adopted_expire_time: hash?.adoptedExpireTime?.toISOString() ?? null,
    request_id: request?.requestId ?? null,
    request_fingerprint: request === null ? null : bytea(request.fingerprint),
  };
}

/** The text form of `bytea` (PostgreSQL docs, 8.4.1). */
function bytea(bytes: Uint8Array): string {
  return `\\x${hex(bytes)}`;
}

/** Returns rows in the text format of COPY (PostgreSQL docs, COPY, "Text Format"). */
export function toCopyText(rows: readonly NewRow[]): string {
  let text = "";
  for (const row of rows) {
    let end = "";
    for (const value of Object.values(row)) {
      text += end + copyValue(value);
      end = "\t";
    }
    text += "\n";
  }
  return text;
}

function copyValue(value: NewValue): string {
  if (value === null) return "\\N";
  if (typeof value === "number") return `${value}`;
  if (typeof value === "string") return escapeCopy(value);
  return escapeCopy(isTextList(value) ? writeArray(value) : JSON.stringify(value));
}

/** The text arrays of a row; its other lists are JSON. */
function isTextList(value: NewValue): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

const SPECIAL = /[\\\t\n\r]/;

/** One pass per character: a replacer function takes twice as long, and every digest contains a backslash. */
function escapeCopy(text: string): string {
  if (!SPECIAL.test(text)) return text;
  const escaped = text.replaceAll("\\", "\\\\").replaceAll("\t", "\\t");
  return escaped.replaceAll("\n", "\\n").replaceAll("\r", "\\r");
}

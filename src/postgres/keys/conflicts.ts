import type { Sql } from "postgres";
import type { Insertion, NewKey } from "../../keys/ports.ts";
import { byteArray, hex } from "../connection/array-types.ts";
import { ownSession } from "../connection/session-settings.ts";
import { KEY_COLUMNS, type KeyRow, toApiKey } from "./rows.ts";

interface ConflictRow extends KeyRow {
  readonly requestId: string | null;
  readonly requestFingerprint: Buffer | null;
}

/** Returns what each key conflicts with: itself, if the response to its insert was lost; a retry of its request; an equal raw key. */
export async function findConflicts(sql: Sql, keys: readonly NewKey[]): Promise<Map<NewKey, Insertion>> {
  if (keys.length === 0) return new Map();
  const rows = await findRows(sql, keys);
  const digests = await findDigests(sql, keys);
  const ids = new Set(rows.map((row) => row.keyId));
  const requests = new Map(rows.map((row) => [`${row.kind} ${row.requestId}`, row]));
  const conflictOf = (pending: NewKey): Insertion | null => {
    const { key, request } = pending;
    if (ids.has(key.keyId)) return { outcome: "inserted", key };
    const repeat = request === null ? undefined : requests.get(`${key.kind} ${request.requestId}`);
    if (repeat?.requestFingerprint) {
      return { outcome: "repeated", key: toApiKey(repeat), fingerprint: repeat.requestFingerprint };
    }
    if (rawKeyDigests(pending).some((digest) => digests.has(digest))) return { outcome: "raw_key_exists" };
    return prefixDigests(pending).some((digest) => digests.has(digest)) ? { outcome: "lookup_prefix_exists" } : null;
  };
  const conflicts = keys.map((key) => [key, conflictOf(key)] as const);
  return new Map(conflicts.flatMap(([key, conflict]) => (conflict === null ? [] : [[key, conflict] as const])));
}

/**
 * Each condition uses one index (migrations 0006 and 0007). `= ANY ('{}')` is omitted: it matches no row, so the planner considers the
 * predicate of every partial index implied and may scan one of them.
 */
function findRows(sql: Sql, keys: readonly NewKey[]): PromiseLike<ConflictRow[]> {
  const ids = keys.map(({ key }) => key.keyId);
  const requestIds = keys.flatMap(({ request }) => request?.requestId ?? []);
  const byRequest = sql`ARRAY (SELECT key_id FROM api_keys WHERE request_id = ANY (${requestIds}::text[]))`;
  return sql<ConflictRow[]>`
    SELECT ${sql(KEY_COLUMNS)}, request_id, request_fingerprint FROM api_keys
    WHERE key_id = ANY (${ids}::uuid[] ${requestIds.length === 0 ? sql`` : sql`|| ${byRequest}`}) AND ${ownSession(sql)}`;
}

/** Returns the digests among those of the keys that belong to a stored raw key, in hexadecimal. */
async function findDigests(sql: Sql, keys: readonly NewKey[]): Promise<Set<string>> {
  const digests = keys.flatMap((key) => [...rawKeyDigests(key), ...prefixDigests(key)]);
  if (digests.length === 0) return new Set();
  const rows = await sql<{ digest: Buffer }[]>`
    SELECT digest FROM raw_key_digests WHERE digest = ANY ${byteArray(sql, digests)} AND ${ownSession(sql)}`;
  return new Set(rows.map((row) => hex(row.digest)));
}

function rawKeyDigests({ key, digest, otherDigests }: NewKey): string[] {
  return key.kind === "imported" ? [digest, ...otherDigests].map((one) => hex(one.digest)) : [];
}

function prefixDigests({ hash }: NewKey): string[] {
  return (hash?.lookup?.digests ?? []).map((one) => hex(one.digest));
}

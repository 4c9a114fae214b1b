import type { Sql } from "postgres";
import type { Insertion, NewKey } from "../keys/store.ts";
import { byteArray, hex } from "./bytes.ts";
import { KEY_COLUMNS, type KeyRow, toApiKey } from "./rows.ts";

/** A key to be stored, with its place among those of the call. */
export interface Pending {
  readonly key: NewKey;
  readonly index: number;
}

interface ConflictRow extends KeyRow {
  readonly digest: Buffer;
  readonly request_id: string | null;
  readonly request_fingerprint: Buffer | null;
}

/** By place, the keys whose raw key is stored under a server key that has been retired since. */
export async function findKnown(sql: Sql, keys: readonly NewKey[]): Promise<Map<number, Insertion>> {
  const digests = keys.flatMap((key) => key.retiredDigests.map(hex));
  if (digests.length === 0) return new Map();
  const rows = await sql<{ digest: Buffer }[]>`
    SELECT digest FROM api_keys WHERE kind = 'imported' AND digest = ANY ${byteArray(sql, digests)}`;
  const stored = new Set(rows.map((row) => hex(row.digest)));
  const known = keys.flatMap((key, index) =>
    key.retiredDigests.some((digest) => stored.has(hex(digest))) ? [{ key, index }] : [],
  );
  const found = new Map(known.map(({ index }): [number, Insertion] => [index, { outcome: "raw_key_exists" }]));
  for (const [index, conflict] of await findConflicts(sql, known)) found.set(index, conflict);
  return found;
}

/** What each key conflicted with, by place: itself, where the answer to storing it was lost; a repeat of its request; an equal raw key. */
export async function findConflicts(sql: Sql, pending: readonly Pending[]): Promise<Map<number, Insertion>> {
  if (pending.length === 0) return new Map();
  const find = indexed(await findRows(sql, pending));
  return new Map(
    pending.flatMap(({ key, index }): [number, Insertion][] => {
      const conflict = find(key);
      return conflict === null ? [] : [[index, conflict]];
    }),
  );
}

/** Three plain conditions, one an index. */
function findRows(sql: Sql, pending: readonly Pending[]): PromiseLike<ConflictRow[]> {
  const ids = pending.map(({ key }) => key.key.keyId);
  const requestIds = pending.flatMap(({ key }) => key.request?.requestId ?? []);
  const digests = pending.map(({ key }) => hex(key.digest.digest));
  return sql<ConflictRow[]>`
    SELECT ${sql(KEY_COLUMNS)}, digest, request_id, request_fingerprint FROM api_keys
    WHERE key_id = ANY (${ids}::uuid[])
      OR (kind IN ('issued', 'imported') AND request_id = ANY (${requestIds}::text[]))
      OR (kind = 'imported' AND digest = ANY ${byteArray(sql, digests)})`;
}

function indexed(rows: readonly ConflictRow[]): (key: NewKey) => Insertion | null {
  const ids = new Set(rows.map((row) => row.key_id));
  const requests = new Map(rows.map((row) => [`${row.kind} ${row.request_id}`, row]));
  const digests = new Set(rows.map((row) => `${row.kind} ${hex(row.digest)}`));
  return ({ key, digest, request }) => {
    if (ids.has(key.keyId)) return { outcome: "inserted", key };
    const repeat = request === null ? undefined : requests.get(`${key.kind} ${request.requestId}`);
    if (repeat?.request_fingerprint) {
      return { outcome: "repeated", key: toApiKey(repeat), fingerprint: repeat.request_fingerprint };
    }
    return digests.has(`${key.kind} ${hex(digest.digest)}`) ? { outcome: "raw_key_exists" } : null;
  };
}

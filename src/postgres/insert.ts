import type { Sql } from "postgres";
import type { Insertion, NewKey } from "../keys/store.ts";
import { byteArray, hex } from "./bytes.ts";
import { KEY_COLUMNS, type KeyRow, toApiKey } from "./rows.ts";

/** A key that was deleted between our conflict with it and our look at it frees its place: how often to try again. */
const ATTEMPTS = 3;

/**
 * Stores keys in one statement and one commit. A key whose raw key or request is known already conflicts and is not stored;
 * what it conflicts with is read afterwards, since it may have been committed by another server meanwhile.
 */
export async function insertKeys(sql: Sql, keys: readonly NewKey[]): Promise<Insertion[]> {
  const places = keys.map((key, index) => ({ key, index }));
  const retired = await findRetiredDigests(sql, keys);
  const known = places.filter(({ index }) => retired.has(index));
  const results: (Insertion | null)[] = keys.map(() => null);
  for (const { index } of known) results[index] = { outcome: "raw_key_exists" };
  for (const [index, found] of await findConflicts(sql, known)) results[index] = found;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const pending = places.filter(({ index }) => results[index] === null);
    if (pending.length === 0) break;
    const stored = await insertRows(
      sql,
      pending.map(({ key }) => key),
    );
    const rest = pending.filter(({ key }) => !stored.has(key.key.keyId));
    for (const { key, index } of pending)
      if (stored.has(key.key.keyId)) results[index] = { outcome: "inserted", key: key.key };
    for (const [index, found] of await findConflicts(sql, rest)) results[index] = found;
  }
  return results.map((result) => result ?? { outcome: "raw_key_exists" });
}

/** Identifiers of the keys that were stored. A duplicate within the statement conflicts with the first like any other. */
async function insertRows(sql: Sql, keys: readonly NewKey[]): Promise<Set<string>> {
  const rows = await sql<{ key_id: string }[]>`
    INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, expire_time,
      digest, digest_key_id, request_id, request_fingerprint)
    SELECT key_id, kind, name, actor_id, scopes, metadata, hint, create_time, create_time, expire_time,
      decode(digest, 'hex'), digest_key_id, request_id, decode(request_fingerprint, 'hex')
    FROM jsonb_to_recordset(${sql.json(inLockOrder(keys).map(toJson))}) AS row (
      key_id uuid, kind text, name text, actor_id text, scopes text[], metadata jsonb, hint text,
      create_time timestamptz, expire_time timestamptz, digest text, digest_key_id text,
      request_id text, request_fingerprint text)
    ON CONFLICT DO NOTHING
    RETURNING key_id`;
  return new Set(rows.map((row) => row.key_id));
}

/**
 * By their digests: a row waits for an equal one of another batch, and two batches in different orders would wait for each
 * other. Keys of one request stay in their order.
 */
function inLockOrder(keys: readonly NewKey[]): NewKey[] {
  const digestOf = ([first]: readonly NewKey[]) => first?.digest.digest ?? new Uint8Array();
  const groups = [...Map.groupBy(keys, ({ key, request }) => request?.requestId ?? key.keyId).values()];
  return groups.sort((a, b) => Buffer.compare(digestOf(a), digestOf(b))).flat();
}

function toJson({ key, digest, request }: NewKey) {
  return {
    key_id: key.keyId,
    kind: key.kind,
    name: key.name,
    actor_id: key.actorId,
    scopes: [...key.scopes],
    metadata: { ...key.metadata },
    hint: key.hint,
    create_time: key.createTime.toISOString(),
    expire_time: key.expireTime?.toISOString() ?? null,
    digest: hex(digest.digest),
    digest_key_id: digest.keyId,
    request_id: request?.requestId ?? null,
    request_fingerprint: request === null ? null : hex(request.fingerprint),
  };
}

/** Places of keys whose raw key is stored under a server key that has been retired since. */
async function findRetiredDigests(sql: Sql, keys: readonly NewKey[]): Promise<Set<number>> {
  const digests = keys.flatMap((key) => key.retiredDigests.map(hex));
  if (digests.length === 0) return new Set();
  const rows = await sql<{ digest: string }[]>`
    SELECT encode(digest, 'hex') AS digest FROM api_keys
    WHERE kind = 'imported' AND digest = ANY ${byteArray(sql, digests)}`;
  const stored = new Set(rows.map((row) => row.digest));
  return new Set(keys.flatMap((key, index) => (key.retiredDigests.some((d) => stored.has(hex(d))) ? [index] : [])));
}

type Pending = { readonly key: NewKey; readonly index: number };

/** What each key conflicted with: a repeat of its request comes before an equal raw key. */
async function findConflicts(sql: Sql, pending: readonly Pending[]): Promise<Map<number, Insertion>> {
  if (pending.length === 0) return new Map();
  const requestIds = pending.flatMap(({ key }) => key.request?.requestId ?? []);
  const digests = pending.map(({ key }) => hex(key.digest.digest));
  const rows = await sql<
    (KeyRow & { digest: string; request_id: string | null; request_fingerprint: Buffer | null })[]
  >`
    SELECT ${sql(KEY_COLUMNS)}, encode(digest, 'hex') AS digest, request_id, request_fingerprint FROM api_keys
    WHERE request_id = ANY (${requestIds}::text[])
      OR (kind = 'imported' AND digest = ANY ${byteArray(sql, digests)})`;
  return new Map(
    pending.flatMap(({ key, index }): [number, Insertion][] => {
      const ofKind = rows.filter((row) => row.kind === key.key.kind);
      const repeat = ofKind.find((row) => row.request_id !== null && row.request_id === key.request?.requestId);
      if (repeat?.request_fingerprint) {
        return [[index, { outcome: "repeated", key: toApiKey(repeat), fingerprint: repeat.request_fingerprint }]];
      }
      const same = ofKind.some((row) => row.digest === hex(key.digest.digest));
      return same ? [[index, { outcome: "raw_key_exists" }]] : [];
    }),
  );
}

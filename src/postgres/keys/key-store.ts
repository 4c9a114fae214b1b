import postgres, { type Fragment, type Sql } from "postgres";
import type { Change, ChangeVerb } from "../../domain/change.ts";
import type { ApiKey } from "../../domain/key.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Insertion, KeyName, KeyStore, KeyUpdate, NewExpiry, Revocation, Rotation } from "../../keys/ports.ts";
import { awaitPropagation, type ChangeCommitter, type ChangeWork, changeRow } from "../cluster/change-committer.ts";
import { allOf } from "../connection/fragments.ts";
import type { Database } from "../connection/pool.ts";
import { withServer } from "../connection/server-position.ts";
import { createLists } from "../lists/list-keys.ts";
import { canGrant, canManage } from "./authorization.ts";
import { batchGets } from "./batch-gets.ts";
import { batchInserts } from "./batch-inserts.ts";
import { active, earliestTime, latestTime, movable, readTime, stillActive } from "./expiry.ts";
import { KEY_COLUMNS, toApiKey } from "./rows.ts";
import { forward, setDisabled, setRevoked } from "./state-changes.ts";

export interface KeyDatabases {
  readonly reads: Database;
  /** Prepares only what is marked: each filter is another statement, and a connection would keep them all. */
  readonly lists: Database;
}

/**
 * Stores keys in PostgreSQL. Each change is one statement that tests its own condition, so that one of two concurrent changes wins. A
 * change returns when it is propagated, and so does one whose condition did not hold: the reason may be an earlier change whose
 * response was lost. `urgent` commits what takes rights away, and must not wait behind other changes.
 */
export function createKeyStore({ reads, lists }: KeyDatabases, changes: ChangeCommitter, urgent = changes): KeyStore {
  const change = async (
    verb: ChangeVerb,
    { keyId }: KeyName,
    principal: Principal,
    statement: (sql: Sql) => Fragment,
    committer = changes,
  ): Promise<Change | Unchanged | null> => {
    const work: ChangeWork<Change | Unchanged | null> = async (sql, ranOn) => {
      const row = await changeRow<ChangedRow | UnchangedRow | { keyId: null }>(sql, statement(sql), ranOn);
      if (row.keyId !== null) return toChange(verb, row, principal);
      return "before.keyId" in row && row["before.keyId"] !== null ? { verb: null, after: keyBefore(row) } : null;
    };
    const isMade = (made: Change | Unchanged | null): made is Change => made !== null && made.verb !== null;
    const committed = await committer.commit(work, {
      statement: `keys.${verb}`,
      isMade,
      invalidates: { keyIds: [keyId], digests: [] },
      changesOf: (made) => (isMade(made) ? [made] : []),
    });
    return awaitPropagation(committed, (made) => (isMade(made) ? [keyId] : []));
  };
  const insert = batchInserts(changes);
  const list = createLists();
  return {
    insert: async (keys) => awaitPropagation(await insert(keys), insertedKeyIds),
    get: batchGets(reads),
    latestTime: (now) => reads.run((sql) => readTime(sql, latestTime(sql, now)), "keys.time"),
    earliestTime: (now) => reads.run((sql) => readTime(sql, earliestTime(sql, now)), "keys.time"),
    list: (query, now) => lists.run((sql) => list(sql, query, now), "keys.list"),
    update: async (name, update, principal, now) =>
      after(await change("update", name, principal, (sql) => updateKey(sql, name, update, principal, now))),
    rotate: async (name, rotation, principal, now) =>
      after(await change("rotate", name, principal, (sql) => rotateKey(sql, name, rotation, principal, now))),
    revoke: async (name, revocation, principal, now) =>
      after(await change("revoke", name, principal, (sql) => revokeKey(sql, name, revocation, principal, now), urgent)),
    disable: async (name, reason, principal, now) =>
      after(await change("disable", name, principal, (sql) => disableKey(sql, name, reason, principal, now), urgent)),
    enable: async (name, principal, now) =>
      after(await change("enable", name, principal, (sql) => enableKey(sql, name, principal, now))),
    delete: async (name, principal) =>
      (await change("delete", name, principal, (sql) => deleteKey(sql, name, principal))) !== null,
  };
}

/** A key that was in the requested state already. */
interface Unchanged {
  readonly verb: null;
  readonly after: ApiKey;
}

function after(change: Change | Unchanged | null): ApiKey | null {
  return change?.after ?? null;
}

/** A key before a change. */
type BeforeRow = { readonly [C in keyof ApiKey as `before.${C}`]: ApiKey[C] };

/** A key after a change and, with a prefix, before it. */
export type ChangedRow = ApiKey & BeforeRow;

/** A key that needed no change. */
type UnchangedRow = { readonly keyId: null } & BeforeRow;

/** Returns the change that a statement has made to a row. */
export function toChange(verb: ChangeVerb, row: ChangedRow, principal: Principal): Change {
  const now = toApiKey(row);
  if (verb === "delete") return { verb, key: now, before: now, after: null, principal };
  return { verb, key: now, before: keyBefore(row), after: now, principal };
}

function keyBefore(row: BeforeRow): ApiKey {
  const columns = KEY_COLUMNS.map((column) => [column, row[`before.${column}`]]);
  return toApiKey(Object.fromEntries(columns));
}

function insertedKeyIds(insertions: readonly Insertion[]): string[] {
  return insertions.flatMap((insertion) => (insertion.outcome === "inserted" ? [insertion.key.keyId] : []));
}

function updateKey(sql: Sql, name: KeyName, update: KeyUpdate, principal: Principal, now: Date) {
  const set = sql`
      update_time = ${forward(sql, now)}
      ${update.name === undefined ? sql`` : sql`, name = ${update.name}`}
      ${update.scopes === undefined ? sql`` : sql`, scopes = ${[...update.scopes]}::text[]`}
      ${update.metadata === undefined ? sql`` : sql`, metadata = ${sql.json({ ...update.metadata })}`}
      ${update.expiry === undefined ? sql`` : sql`, ${setExpiry(sql, update.expiry)}`}
      ${update.allowedCidrs === undefined ? sql`` : sql`, allowed_cidrs = ${update.allowedCidrs && [...update.allowedCidrs]}::text[]`}`;
  const conditions = [
    active(sql, now),
    canGrant(sql, principal, update),
    ...unchanged(sql, update),
    ...movable(sql, update, now),
  ];
  return updateRow(sql, name, set, conditions);
}

/** A key that is adopted later keeps this expiry. */
function setExpiry(sql: Sql, { time }: NewExpiry): Fragment {
  return sql`expire_time = ${time}, adopt_before_time = NULL, adopted_expire_time = NULL`;
}

/** Conditions that the immutable fields of an update have their values. */
function unchanged(sql: Sql, { actorId, restrictedToActorIds }: KeyUpdate): Fragment[] {
  return [
    ...(actorId === undefined ? [] : [sql`actor_id = ${actorId}`]),
    ...(restrictedToActorIds === undefined
      ? []
      : [sql`restricted_to_actor_ids IS NOT DISTINCT FROM ${[...restrictedToActorIds]}::text[]`]),
  ];
}

function rotateKey(sql: Sql, name: KeyName, rotation: Rotation, principal: Principal, now: Date) {
  const inGrace = sql`(
    SELECT coalesce(jsonb_agg(secret ORDER BY place), '[]')
    FROM jsonb_array_elements(previous_secrets) WITH ORDINALITY AS previous (secret, place)
    WHERE (secret ->> 'expire_time')::timestamptz > ${now})`;
  const replaced = sql`jsonb_build_array(jsonb_build_object(
    'version', secret_version, 'digest', encode(digest, 'hex'), 'digest_key_id', digest_key_id,
    'expire_time', ${rotation.graceEnd}::timestamptz))`;
  const room = rotation.graceEnd === null ? [] : [sql`jsonb_array_length(${inGrace}) < ${rotation.maxGraceSecrets}`];
  const set = sql`
      secret_version = ${rotation.version},
      digest = ${rotation.digest.digest}, digest_key_id = ${rotation.digest.keyId}, hint = ${rotation.hint},
      previous_secrets = ${rotation.graceEnd === null ? sql`'[]'` : sql`${replaced} || ${inGrace}`},
      rotate_time = ${now}, update_time = ${forward(sql, now)}`;
  const conditions = [active(sql, now), canGrant(sql, principal), ...room];
  return updateRow(sql, name, set, conditions);
}

function revokeKey(sql: Sql, name: KeyName, revocation: Revocation, principal: Principal, now: Date) {
  return updateRow(sql, name, setRevoked(sql, revocation, now), [sql`revoke_time IS NULL`, canManage(sql, principal)]);
}

function disableKey(sql: Sql, name: KeyName, reason: string | null, principal: Principal, now: Date) {
  const set = setDisabled(sql, reason, now);
  return updateRow(
    sql,
    name,
    set,
    [stillActive(sql, now), canManage(sql, principal)],
    sql`"before.disableTime" IS NULL`,
  );
}

function enableKey(sql: Sql, name: KeyName, principal: Principal, now: Date) {
  const set = sql`disable_time = NULL, disable_reason = NULL, update_time = ${forward(sql, now)}`;
  return updateRow(sql, name, set, [active(sql, now), canGrant(sql, principal)], sql`"before.disableTime" IS NOT NULL`);
}

function deleteKey(sql: Sql, name: KeyName, principal: Principal) {
  const deletion = sql`
    DELETE FROM api_keys WHERE ${keyWhere(sql, name, [canManage(sql, principal)])}
    RETURNING ${sql(KEY_COLUMNS)}`;
  return withServer(sql, deletion);
}

const BEFORE_COLUMNS = KEY_COLUMNS.map((column) => `${postgres.fromCamel(column)} AS "before.${column}"`).join(", ");

/**
 * Changes the row of this key if all conditions hold, and returns it with its columns before the change. The row is locked first: what the
 * conditions are tested against, and what is returned as before, is what the change is made to. A row that needs no change is returned
 * with its columns before alone.
 */
export function updateRow(
  sql: Sql,
  name: KeyName,
  set: Fragment,
  conditions: readonly Fragment[],
  isNeeded: Fragment = sql`true`,
): Fragment {
  const before = sql`
    before AS (
      SELECT ${sql.unsafe(BEFORE_COLUMNS)} FROM api_keys WHERE ${keyWhere(sql, name, conditions)} FOR NO KEY UPDATE
    ),`;
  const update = sql`
    updated AS (
      UPDATE api_keys SET ${set} FROM before WHERE key_id = "before.keyId" AND ${isNeeded} RETURNING ${sql(KEY_COLUMNS)}
    ),`;
  const result = sql`SELECT * FROM before LEFT JOIN updated ON true WHERE key_id IS NOT NULL OR NOT ${isNeeded}`;
  return withServer(sql, result, sql`${before} ${update}`);
}

/**
 * Selects the row of this key if all conditions hold. They are in a CASE, so that the planner uses no index for them (PostgreSQL docs,
 * 4.2.14): otherwise, while a table is small or lacks statistics, it may prefer an index that begins with `kind` to the primary key,
 * and read every key of that kind.
 */
function keyWhere(sql: Sql, { keyId, kind }: KeyName, conditions: readonly Fragment[]): Fragment {
  const all = kind === null ? conditions : [sql`kind = ${kind}`, ...conditions];
  return sql`key_id = ${keyId} AND CASE WHEN ${allOf(sql, all)} THEN true ELSE false END`;
}

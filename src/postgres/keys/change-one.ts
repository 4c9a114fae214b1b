import postgres, { type Fragment, type Sql } from "postgres";
import type { Change, ChangeVerb } from "../../domain/change.ts";
import type { ApiKey } from "../../domain/key.ts";
import { MAX_GRACE_SECRETS } from "../../domain/limits.ts";
import type { Principal } from "../../domain/principal.ts";
import type { KeyMutation, KeyName, KeyUpdate, NewExpiry, Revocation, Rotation } from "../../keys/ports.ts";
import { allOf } from "../connection/fragments.ts";
import { withServer } from "../connection/server-position.ts";
import { canGrant, canManage } from "./authorization.ts";
import { active, movable, stillActive } from "./expiry.ts";
import { KEY_COLUMNS, type KeyRow, storedReason, toApiKey } from "./rows.ts";

type BeforeRow = { readonly [C in keyof KeyRow as `before.${C}`]: KeyRow[C] };

/** A key after a change and, with a prefix, before it. */
export type ChangedRow = KeyRow & BeforeRow;

/** A key that needed no change. */
export type UnchangedRow = { readonly keyId: null } & BeforeRow;

/** Returns the change that a statement has made to a row. */
export function toChange(verb: ChangeVerb, row: ChangedRow, principal: Principal): Change {
  const now = toApiKey(row);
  if (verb === "delete") return { verb, key: now, before: now, after: null, principal };
  return { verb, key: now, before: keyBefore(row), after: now, principal };
}

export function keyBefore(row: BeforeRow): ApiKey {
  const columns = KEY_COLUMNS.map((column) => [column, row[`before.${column}`]]);
  return toApiKey(Object.fromEntries(columns));
}

/** Never moves the time back: the later of two changes may have begun first, or on a server whose clock is behind. */
export function forward(sql: Sql, now: Date): Fragment {
  return sql`greatest(update_time, ${now})`;
}

/** Returns the SET clause of a revocation. */
export function setRevoked(sql: Sql, { reason, description }: Revocation, now: Date): Fragment {
  return sql`
    revoke_time = ${now}, revocation_reason = ${storedReason(reason)}, revocation_description = ${description}, update_time = ${forward(sql, now)}`;
}

/** Returns the SET clause of a disabling. */
export function setDisabled(sql: Sql, reason: string | null, now: Date): Fragment {
  return sql`disable_time = ${now}, disable_reason = ${reason}, update_time = ${forward(sql, now)}`;
}

/** Returns the statement of a change, which returns the row after it and, but for a deletion, before it. */
export function mutationOf(sql: Sql, name: KeyName, change: KeyMutation, principal: Principal, now: Date): Fragment {
  switch (change.verb) {
    case "update": {
      const conditions = [canGrant(sql, principal, change), ...unchanged(sql, change), ...movable(sql, change, now)];
      return updateRow(sql, name, setUpdated(sql, change, now), [active(sql, now), ...conditions]);
    }
    case "rotate": {
      const conditions = [active(sql, now), canGrant(sql, principal), ...graceRoom(sql, change, now)];
      return updateRow(sql, name, setRotated(sql, change, now), conditions);
    }
    case "revoke": {
      const conditions = [sql`revoke_time IS NULL`, canManage(sql, principal)];
      return updateRow(sql, name, setRevoked(sql, change, now), conditions);
    }
    case "disable": {
      const conditions = [stillActive(sql, now), canManage(sql, principal)];
      const set = setDisabled(sql, change.reason, now);
      return updateRow(sql, name, set, conditions, sql`"before.disableTime" IS NULL`);
    }
    case "enable": {
      const conditions = [active(sql, now), canGrant(sql, principal)];
      const set = sql`disable_time = NULL, disable_reason = NULL, update_time = ${forward(sql, now)}`;
      return updateRow(sql, name, set, conditions, sql`"before.disableTime" IS NOT NULL`);
    }
    case "delete": {
      const condition = keyWhere(sql, name, [canManage(sql, principal)]);
      return withServer(sql, sql`DELETE FROM api_keys WHERE ${condition} RETURNING ${sql(KEY_COLUMNS)}`);
    }
  }
}

function setUpdated(sql: Sql, update: KeyUpdate, now: Date): Fragment {
  return sql`
      update_time = ${forward(sql, now)}
      ${update.name === undefined ? sql`` : sql`, name = ${update.name}`}
      ${update.scopes === undefined ? sql`` : sql`, scopes = ${[...update.scopes]}::text[]`}
      ${update.metadata === undefined ? sql`` : sql`, metadata = ${sql.json({ ...update.metadata })}`}
      ${update.expiry === undefined ? sql`` : sql`, ${setExpiry(sql, update.expiry)}`}
      ${update.allowedCidrs === undefined ? sql`` : sql`, allowed_cidrs = ${update.allowedCidrs && [...update.allowedCidrs]}::text[]`}`;
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

function setRotated(sql: Sql, rotation: Rotation, now: Date): Fragment {
  const replaced = sql`jsonb_build_array(jsonb_build_object(
    'version', secret_version, 'digest', encode(digest, 'hex'), 'digest_key_id', digest_key_id,
    'expire_time', ${rotation.graceEnd}::timestamptz))`;
  return sql`
      secret_version = ${rotation.version},
      digest = ${rotation.digest.digest}, digest_key_id = ${rotation.digest.keyId}, hint = ${rotation.hint},
      previous_secrets = ${rotation.graceEnd === null ? sql`'[]'` : sql`${replaced} || ${secretsInGrace(sql, now)}`},
      rotate_time = ${now}, update_time = ${forward(sql, now)}`;
}

/** Returns the condition that another secret may have a grace period. */
function graceRoom(sql: Sql, { graceEnd }: Rotation, now: Date): Fragment[] {
  return graceEnd === null ? [] : [sql`jsonb_array_length(${secretsInGrace(sql, now)}) < ${MAX_GRACE_SECRETS}`];
}

function secretsInGrace(sql: Sql, now: Date): Fragment {
  return sql`(
    SELECT coalesce(jsonb_agg(secret ORDER BY place), '[]')
    FROM jsonb_array_elements(previous_secrets) WITH ORDINALITY AS previous (secret, place)
    WHERE (secret ->> 'expire_time')::timestamptz > ${now})`;
}

const BEFORE_COLUMNS = KEY_COLUMNS.map((column) => `${postgres.fromCamel(column)} AS "before.${column}"`).join(", ");

/**
 * Changes the row of this key if all conditions hold, and returns it with its columns as they were when it was locked. The conditions are
 * tested after that. A row that needs no change is returned with its columns before alone.
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

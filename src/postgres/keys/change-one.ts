import postgres, { type SerializableParameter } from "postgres";
import type { Change, ChangeVerb } from "../../domain/change.ts";
import type { ApiKey } from "../../domain/key.ts";
import { MAX_GRACE_SECRETS } from "../../domain/limits.ts";
import { callerName, type Principal } from "../../domain/principal.ts";
import type { KeyMutation, KeyName, KeyUpdate } from "../../keys/ports.ts";
import { callContext } from "../connection/call-context.ts";
import { type Tag, text } from "../connection/fragments.ts";
import { type Execution, type Prepared, prepared, type Values } from "../connection/prepared.ts";
import { withServer } from "../connection/server-position.ts";
import { canGrant, canManage, FINAL_EXPIRE_TIME, PRINCIPAL, valuesOf } from "./authorization.ts";
import { active, latestTime, stillActive } from "./expiry.ts";
import { adjustBucket, adjustedQuotas, hasQuota } from "./quota-adjustment.ts";
import { KEY_COLUMNS, type KeyRow, keyOfRow, storedReason } from "./rows.ts";
import { toStoredLimit, toStoredQuota } from "./stored-limits.ts";

/** A key before a change, and the columns that the change has set: none by a deletion, and null if the key needed no change. */
export type ChangedRow = { readonly [C in keyof KeyRow as `before.${C}`]: KeyRow[C] } & {
  readonly [C in keyof KeyRow]?: KeyRow[C] | null;
};

/** The result if the condition of a change did not hold. */
export type NoRow = { readonly "before.keyId": null };

/** Returns the change that a statement has made to a row; null if the key needed none. */
export function toChange(verb: ChangeVerb, row: ChangedRow, principal: Principal): Change | null {
  if (row.updateTime === null) return null;
  const before = keyBefore(row);
  const after = verb === "delete" ? null : keyOf(row, true);
  return { verb, key: after ?? before, before, after, principal };
}

export function keyBefore(row: ChangedRow): ApiKey {
  return keyOf(row, false);
}

const COLUMNS = KEY_COLUMNS.map((column) => ({ column, before: `before.${column}` as const }));

function keyOf(row: ChangedRow, isAfter: boolean): ApiKey {
  const key: Partial<Record<keyof KeyRow, unknown>> = {};
  for (const { column, before } of COLUMNS)
    key[column] = isAfter && row[column] !== undefined ? row[column] : row[before];
  return keyOfRow(key as KeyRow);
}

/** Never moves the time back: the later of two changes may have begun first, or on a server whose clock is behind. */
export function forward<F>(sql: Tag<F>, now: SerializableParameter): F {
  return sql`greatest(update_time, ${now}::timestamptz)`;
}

type Parameters<N extends string> = Readonly<Record<N, SerializableParameter>>;

/** Returns the SET clause of a revocation. */
export function setRevoked<F>(
  sql: Tag<F>,
  { reason, description, caller, now }: Parameters<"reason" | "description" | "caller" | "now">,
): F {
  return sql`
    revoke_time = ${now}::timestamptz, revocation_reason = ${reason}, revocation_description = ${description},
    revoked_by = ${caller},     update_time = ${forward(sql, now)}`;
}

/** Returns the SET clause of a disabling. */
export function setDisabled<F>(sql: Tag<F>, { reason, caller, now }: Parameters<"reason" | "caller" | "now">): F {
  return sql`
    disable_time = ${now}::timestamptz, disable_reason = ${reason}, disabled_by = ${caller}, update_time = ${forward(sql, now)}`;
}

/** Returns the statement of a change with its values. It returns a `ChangedRow` or a `NoRow`. */
export function mutationOf({ keyId, kind }: KeyName, change: KeyMutation, principal: Principal, now: Date): Execution {
  const values = {
    keyId,
    kind,
    now,
    call: callContext(principal),
    caller: callerName(principal),
    ...valuesOf(principal),
    ...changeValues(change),
  };
  return { statement: STATEMENTS[change.verb], values };
}

function changeValues(change: KeyMutation): Values {
  switch (change.verb) {
    case "update":
      return updateValues(change);
    case "rotate": {
      const { version, digest, hint, graceEnd } = change;
      return { version, digest: digest.digest, digestKeyId: digest.keyId, hint, graceEnd };
    }
    case "revoke":
      return { reason: storedReason(change.reason), description: change.description };
    case "adjustQuota":
      return { quota: change.quota, delta: change.delta };
    case "disable":
      return { reason: change.reason };
    default:
      return {};
  }
}

/** A field that may be set to null has a parameter that says whether it is set. */
export function updateValues({ expiry, allowedCidrs, rateLimits, quotas, ...update }: KeyUpdate): Values {
  const { name = null, scopes = null, metadata = null, actorId = null, restrictedToActorIds = null } = update;
  const { time: expireTime, maxKeyTtl } = expiry ?? { time: null, maxKeyTtl: null };
  const setsCidrs = allowedCidrs !== undefined;
  const values = { name, scopes, metadata, actorId, restrictedToActorIds, expireTime, maxKeyTtl, setsCidrs };
  const limits = {
    ...{ setsLimits: rateLimits !== undefined, rateLimits: rateLimits?.map(toStoredLimit) ?? null },
    ...{ setsQuotas: quotas !== undefined, quotas: quotas?.map(toStoredQuota) ?? null },
  };
  return { ...values, ...limits, setsExpiry: expiry !== undefined, allowedCidrs: allowedCidrs ?? null };
}

const NOW = "$now";

/** A key that is adopted later keeps a new expiry. */
const SET_UPDATED = text`
  update_time = ${forward(text, NOW)},
  name = coalesce($name, name), scopes = coalesce($scopes, scopes), metadata = coalesce($metadata, metadata),
  expire_time = CASE WHEN $setsExpiry THEN $expireTime::timestamptz ELSE expire_time END,
  adopt_before_time = CASE WHEN NOT $setsExpiry THEN adopt_before_time END,
  adopted_expire_time = CASE WHEN NOT $setsExpiry THEN adopted_expire_time END,
  allowed_cidrs = CASE WHEN $setsCidrs THEN $allowedCidrs ELSE allowed_cidrs END,
  rate_limits = CASE WHEN $setsLimits THEN $rateLimits::jsonb ELSE rate_limits END,
  quotas = CASE WHEN $setsQuotas THEN $quotas::jsonb ELSE quotas END`;

/** The condition that the grantor may make an update. */
export const CAN_GRANT_UPDATE = canGrant(
  "$scopes",
  text`CASE WHEN $setsExpiry THEN $expireTime::timestamptz ELSE ${FINAL_EXPIRE_TIME} END`,
);

/** The condition that the immutable fields of an update have their values. */
const IS_UNCHANGED = text`coalesce(actor_id = $actorId, true)
  AND ($restrictedToActorIds::text[] IS NULL OR restricted_to_actor_ids IS NOT DISTINCT FROM $restrictedToActorIds)`;

/** The condition on a new expiry (`NewExpiry`). */
const IS_MOVABLE = text`(NOT $setsExpiry OR expire_time IS NOT DISTINCT FROM $expireTime::timestamptz
  OR (($expireTime IS NULL OR $expireTime > ${latestTime(text, NOW)})
    AND ($maxKeyTtl::float8 IS NULL OR $expireTime < coalesce(expire_time, 'infinity')
      OR $expireTime <= create_time + $maxKeyTtl * interval '1 ms')))`;

const SECRETS_IN_GRACE = text`(
  SELECT coalesce(jsonb_agg(secret ORDER BY place), '[]')
  FROM jsonb_array_elements(previous_secrets) WITH ORDINALITY AS previous (secret, place)
  WHERE (secret ->> 'expire_time')::timestamptz > $now)`;

const SET_ROTATED = text`
  secret_version = $version, digest = $digest, digest_key_id = $digestKeyId, hint = $hint,
  previous_secrets = CASE WHEN $graceEnd::timestamptz IS NULL THEN '[]' ELSE jsonb_build_array(jsonb_build_object(
    'version', secret_version, 'digest', encode(digest, 'hex'), 'digest_key_id', digest_key_id, 'hint', hint,
    'create_time', coalesce(rotate_time, create_time), 'expire_time', $graceEnd)) || ${SECRETS_IN_GRACE} END,
  rotate_time = $now, update_time = ${forward(text, NOW)}`;

const SET_GRACE_ENDED = text`previous_secrets = '[]', update_time = ${forward(text, NOW)}`;

/** The condition that another secret may have a grace period. */
const HAS_GRACE_ROOM = text`($graceEnd::timestamptz IS NULL OR jsonb_array_length(${SECRETS_IN_GRACE}) < ${MAX_GRACE_SECRETS})`;

const BEFORE = COLUMNS.map(({ column, before }) => text`${postgres.fromCamel(column)} AS "${before}"`).join(", ");

/**
 * Returns a statement that changes the row of a key if all conditions hold, and returns its columns as they were when it was locked, and those
 * that the change sets, which are null if the row needs no change. The conditions are tested when the row is locked.
 *
 * `also` has further statements, each with a name and a comma.
 *
 * The locked row is found by the parameter again: for a join with its id the planner may, while the table has one key, choose a merge join,
 * which reads the whole index, and it keeps that plan.
 */
export function updateRow(
  columns: readonly (keyof KeyRow)[],
  set: string,
  conditions: readonly string[],
  isNeeded = "true",
  also = "",
): Prepared {
  const changed = columns.map((column) => postgres.fromCamel(column)).join(", ");
  const rows = text`
    before AS (SELECT ${BEFORE} FROM api_keys WHERE ${keyWhere(conditions)} FOR NO KEY UPDATE),
    updated AS (UPDATE api_keys SET ${set} FROM before WHERE key_id = $keyId AND ${isNeeded} RETURNING ${changed}),
    ${also}`;
  const result = text`SELECT * FROM before LEFT JOIN updated ON true WHERE update_time IS NOT NULL OR NOT ${isNeeded}`;
  return prepared(withServer(text, result, rows, "$call"));
}

/**
 * Returns the condition that selects a key if all conditions hold. `kind` is tested by an expression that no index has: otherwise, while a table
 * is small or lacks statistics, the planner may prefer an index that begins with `kind` to the primary key, and read every key of that kind.
 */
function keyWhere(conditions: readonly string[]): string {
  return [text`key_id = $keyId`, text`coalesce(kind = $kind, true)`, ...conditions].join(" AND ");
}

const CAN_MANAGE = canManage(text, PRINCIPAL);
const ACTIVE = active(text, NOW);
const CAN_GRANT = canGrant();

const ADJUSTMENT = { quota: "$quota", delta: "$delta", now: NOW };

const SET_ADJUSTED = text`quotas = ${adjustedQuotas(text, ADJUSTMENT)}, update_time = ${forward(text, NOW)}`;

const ADJUST_BUCKET = adjustBucket(text, text`concat('key/', $keyId::uuid)`, ADJUSTMENT);

const STATEMENTS: { readonly [V in KeyMutation["verb"]]: Prepared } = {
  update: updateRow(
    [
      "updateTime",
      "name",
      "scopes",
      "metadata",
      "expireTime",
      "adoptBeforeTime",
      "allowedCidrs",
      "rateLimits",
      "quotas",
    ],
    SET_UPDATED,
    [ACTIVE, CAN_GRANT_UPDATE, IS_UNCHANGED, IS_MOVABLE],
  ),
  adjustQuota: updateRow(
    ["updateTime", "quotas"],
    SET_ADJUSTED,
    [ACTIVE, CAN_GRANT, hasQuota(text, "$quota")],
    "true",
    ADJUST_BUCKET,
  ),
  rotate: updateRow(["updateTime", "rotateTime", "hint", "previousSecrets"], SET_ROTATED, [
    ACTIVE,
    CAN_GRANT,
    HAS_GRACE_ROOM,
  ]),
  endGrace: updateRow(["updateTime", "previousSecrets"], SET_GRACE_ENDED, [ACTIVE, CAN_MANAGE]),
  revoke: updateRow(
    ["updateTime", "revokeTime", "revocationReason", "revocationDescription", "revokedBy"],
    setRevoked(text, { reason: "$reason", description: "$description", caller: "$caller", now: NOW }),
    [text`revoke_time IS NULL`, CAN_MANAGE],
  ),
  disable: updateRow(
    ["updateTime", "disableTime", "disableReason", "disabledBy"],
    setDisabled(text, { reason: "$reason", caller: "$caller", now: NOW }),
    [stillActive(text, NOW), CAN_MANAGE],
    text`"before.disableTime" IS NULL`,
  ),
  enable: updateRow(
    ["updateTime", "disableTime", "disableReason", "disabledBy"],
    text`disable_time = NULL, disable_reason = NULL, disabled_by = NULL, update_time = ${forward(text, NOW)}`,
    [ACTIVE, CAN_GRANT],
    text`"before.disableTime" IS NOT NULL`,
  ),
  delete: prepared(
    withServer(text, text`DELETE FROM api_keys WHERE ${keyWhere([CAN_MANAGE])} RETURNING ${BEFORE}`, "", "$call"),
  ),
};

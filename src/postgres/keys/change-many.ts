import type { Fragment, Sql } from "postgres";
import type { Change } from "../../domain/change.ts";
import { KeyholdError } from "../../domain/errors.ts";
import type { ApiKey } from "../../domain/key.ts";
import { callerName, type Principal } from "../../domain/principal.ts";
import type { BulkChange, ManyChange } from "../../keys/ports.ts";
import { awaitPropagation, type Commit } from "../cluster/change-committer.ts";
import { firstRow } from "../connection/first-row.ts";
import { allOf } from "../connection/fragments.ts";
import { serverId, setCall, type WithServer } from "../connection/server-position.ts";
import { canManage, valuesOf } from "./authorization.ts";
import { setDisabled, setRevoked } from "./change-one.ts";
import { stillActive } from "./expiry.ts";
import { KEY_COLUMNS, type KeyRow, storedReason, toApiKey } from "./rows.ts";

/** The conditions that the change would change a key, and that the principal may change it. */
export function changeable(sql: Sql, { verb }: BulkChange, principal: Principal, now: Date): Fragment[] {
  const needed =
    verb === "revoke" ? sql`revoke_time IS NULL` : sql`(${stillActive(sql, now)} AND disable_time IS NULL)`;
  return [needed, canManage(sql, valuesOf(principal))];
}

/**
 * Returns common table expressions: `permitted` says whether the caller's credential is valid; if it is, `changed` changes the keys for which
 * all conditions hold. Values may change until a row is locked, so the conditions are tested then, and in a CASE, so that the planner uses no
 * index for them (PostgreSQL docs, 4.2.14), for the reason given at `keyWhere`. The keys, and that of the caller, are locked in the order of
 * their ids, as in every statement that locks several. So a revocation of the caller waits for the slice in progress, or prevents it. The locked rows
 * are found by an array, not by a join, for the reason given at `updateRow`.
 */
export function changeKeys(
  sql: Sql,
  { keyIds, change, principal, requiresCaller, now }: ManyChange,
  conditions: readonly Fragment[],
): Fragment {
  const caller = requiresCaller && principal.keyId !== undefined ? principal.keyId : null;
  const holds = sql`CASE WHEN ${allOf(sql, conditions)} THEN true ELSE false END`;
  const by = { caller: callerName(principal), now };
  const set =
    change.verb === "revoke"
      ? setRevoked(sql, { ...change, ...by, reason: storedReason(change.reason) })
      : setDisabled(sql, { ...change, ...by });
  const isSelected = caller !== null && keyIds.includes(caller) ? holds : sql`key_id IS DISTINCT FROM ${caller}`;
  return sql`
    locked AS (
      SELECT key_id AS before_key_id, update_time AS before_update_time, ${isSelected} AS is_selected,
        (key_id = ${caller} AND ${authenticates(sql, principal, now)}) AS is_caller
      FROM api_keys
      WHERE key_id = ANY (${caller === null ? [...keyIds] : [...keyIds, caller]}::uuid[]) AND (key_id = ${caller} OR ${holds})
      ORDER BY key_id FOR NO KEY UPDATE
    ), permitted AS (
      SELECT ${caller === null ? notExpired(sql, principal, now) : sql`EXISTS (SELECT FROM locked WHERE is_caller)`} AS is_permitted
    ), changed AS (
      UPDATE api_keys SET ${set}
      WHERE key_id = ANY (ARRAY (SELECT before_key_id FROM locked WHERE is_selected)) AND (SELECT is_permitted FROM permitted)
      RETURNING ${sql(KEY_COLUMNS)}
    )`;
}

/** The condition that the principal could authenticate with its key now: see `verify/checks.ts`. It must have no fewer scopes than before. */
function authenticates(sql: Sql, { scopes, secretVersion }: Principal, now: Date): Fragment {
  return sql`revoke_time IS NULL AND disable_time IS NULL AND (expire_time IS NULL OR expire_time > ${now})
    AND scopes @> ${[...scopes]}::text[] AND (secret_version = ${secretVersion ?? null} OR EXISTS (
      SELECT FROM jsonb_array_elements(previous_secrets) AS secret
      WHERE (secret ->> 'version')::integer = ${secretVersion ?? null} AND (secret ->> 'expire_time')::timestamptz > ${now}))`;
}

function notExpired(sql: Sql, { expireTime }: Principal, now: Date): Fragment {
  return expireTime === undefined ? sql`true` : sql`${expireTime}::timestamptz > ${now}`;
}

/** What a key has before, in the columns that the change sets: it was neither revoked nor disabled, by the condition of the change. */
const BEFORE = {
  revoke: { revokeTime: null, revocationReason: null, revocationDescription: null, revokedBy: null },
  disable: { disableTime: null, disableReason: null, disabledBy: null },
} as const satisfies Readonly<Record<string, Partial<ApiKey>>>;

/** A key after a change of many, with the one column before it that does not follow from the change. */
type SliceRow = KeyRow & { readonly beforeUpdateTime: Date };

function toStateChange(verb: keyof typeof BEFORE, row: SliceRow, principal: Principal): Change {
  const after = toApiKey(row);
  const before = { ...after, ...BEFORE[verb], updateTime: row.beforeUpdateTime };
  return { verb, key: after, before, after, principal };
}

/** The head of a result, or one of the changed keys: the columns of the other are null. */
type ManyRow<R> =
  | (WithServer<R> & { readonly isPermitted: boolean; readonly keyId: null })
  | (SliceRow & { readonly server: null });

/**
 * Runs a statement that ends in `selectChanged`. Returns its head, and the ids of the keys that it has changed, when that is propagated.
 *
 * @throws `CALLER_UNAUTHENTICATED`, with nothing changed; `CHANGE_UNCONFIRMED`
 */
export async function commitMany<R extends object>(
  commit: Commit,
  { keyIds, change: { verb }, principal }: ManyChange,
  name: string,
  statement: (sql: Sql) => Fragment,
): Promise<{ readonly head: R; readonly changed: readonly string[] }> {
  const committed = await commit(
    async (sql, ranOn) => {
      const rows = await sql<ManyRow<R>[]>`${statement(sql)}`;
      const head = firstRow(rows.flatMap((row) => (row.server === null ? [] : [row])));
      ranOn(head.server);
      if (!head.isPermitted)
        throw new KeyholdError("CALLER_UNAUTHENTICATED", "the credential became invalid during the call");
      return { head, made: rows.flatMap((row) => (row.keyId === null ? [] : [toStateChange(verb, row, principal)])) };
    },
    {
      statement: name,
      isMade: ({ made }) => made.length > 0,
      invalidates: { keyIds, digests: [] },
      changesOf: ({ made }) => made,
    },
  );
  const changed = committed.result.made.map(({ key }: Change) => key.keyId);
  const { head } = await awaitPropagation(committed, () => changed);
  return { head, changed };
}

/**
 * Returns the SELECT that ends a statement with `changeKeys`, which the call makes (`call-context.ts`). `others` are columns of `from`, a join with
 * at most one row, in the head.
 */
export function selectChanged(sql: Sql, call: string, others: Fragment = sql``, from: Fragment = sql``): Fragment {
  return sql`
    SELECT * FROM (SELECT ${serverId(sql)} AS server, is_permitted ${others} FROM permitted CROSS JOIN ${setCall(sql, call)} AS call ${from}) AS head
    FULL JOIN (SELECT changed.*, before_update_time FROM changed JOIN locked ON key_id = before_key_id) AS made ON false`;
}

import type { Fragment, Sql } from "postgres";
import { KeyholdError } from "../../domain/errors.ts";
import { KEY_KINDS } from "../../domain/key.ts";
import type { BulkOperation, BulkSelection, BulkStore, ManyChange, NewBulkOperation } from "../../keys/ports.ts";
import type { ChangeCommitter } from "../cluster/change-committer.ts";
import { firstRow } from "../connection/first-row.ts";
import { allOf, unionAll } from "../connection/fragments.ts";
import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";
import { compareIds, compileFilter } from "../lists/filter.ts";
import { creationBounds } from "../lists/list-keys.ts";
import { changeable, changeKeys, commitMany, selectChanged } from "./change-many.ts";

const OPERATION_COLUMNS = [
  ...["requestId", "fingerprint", "startTime", "matchedCount", "throughKeyId", "afterKeyId", "changedCount", "done"],
] as const satisfies readonly (keyof BulkOperation)[];

/** After this an operation is forgotten. */
const RETENTION = "7 days";

/**
 * Stores bulk operations in PostgreSQL. `lists` is without prepared statements, because each filter is another statement; `changes` commits
 * over the same. `caughtUp` resolves when this node has received the notifications of everything that is committed.
 */
export function createBulkStore(lists: Database, changes: ChangeCommitter, caughtUp: () => Promise<void>): BulkStore {
  return {
    count: (selection) => lists.run((sql) => count(sql, selection), "bulk.count"),
    find: (requestId) =>
      lists.run(async (sql) => {
        const [row] = await sql<BulkOperation[]>`
          SELECT ${sql(OPERATION_COLUMNS)} FROM bulk_changes WHERE request_id = ${requestId} AND ${ownSession(sql)}`;
        return row ?? null;
      }, "bulk.find"),
    begin: (operation) => lists.run((sql) => begin(sql, operation), "bulk.begin"),
    select: (operation, selection, limit) =>
      lists.run(async (sql) => {
        const rows = await sql<{ keyId: string }[]>`${selectNext(sql, selection, operation, limit)}`;
        return rows.map(({ keyId }) => keyId);
      }, "bulk.select"),
    advance: async (operation, many, isLast) => {
      const name = `bulk.${many.change.verb}`;
      const statement = (sql: Sql) => advance(sql, operation, many, isLast);
      const { head, changed } = await commitMany<StoredOperation>(changes, many, name, statement);
      if (head.requestId !== null) return { operation: toOperation(head), changed };
      throw new KeyholdError("CONCURRENT_CHANGE", "the operation was not continued for a week; repeat the call");
    },
    caughtUp,
  };
}

/** The conditions of a selection. The filter's value may change until a key is locked, so each statement has all of them. */
function conditions(sql: Sql, { filter, filterTime, change, principal }: BulkSelection, now: Date): Fragment {
  const own = principal.keyId === undefined ? [] : [sql`key_id <> ${principal.keyId}`];
  return allOf(sql, [compileFilter(sql, filter, filterTime), ...changeable(sql, change, principal, now), ...own]);
}

/** Before PostgreSQL 18 there is no maximum of a uuid. Its text has the same order. */
async function count(sql: Sql, selection: BulkSelection) {
  const rows = await sql<Pick<NewBulkOperation, "matchedCount" | "throughKeyId">[]>`
    SELECT count(*)::integer AS matched_count, max(key_id::text COLLATE "C") AS through_key_id FROM api_keys
    WHERE ${ownSession(sql)} AND ${conditions(sql, selection, selection.filterTime)}`;
  return firstRow(rows);
}

async function begin(sql: Sql, operation: NewBulkOperation): Promise<void> {
  const { requestId, verb, fingerprint, caller, startTime, throughKeyId, matchedCount } = operation;
  await sql`
    WITH forgotten AS (
      DELETE FROM bulk_changes
      WHERE update_time < clock_timestamp() - ${RETENTION}::text::interval AND request_id <> ${requestId} AND ${ownSession(sql)}
    )
    INSERT INTO bulk_changes (request_id, verb, fingerprint, caller, start_time, through_key_id, matched_count, done)
    VALUES (${requestId}, ${verb}, ${fingerprint}, ${caller}, ${startTime}, ${throughKeyId}, ${matchedCount}, ${matchedCount === 0})
    ON CONFLICT DO NOTHING`;
}

/** Selects the next keys by two ordered scans, because the list indexes begin with the kind (migration 0003). */
function selectNext(sql: Sql, selection: BulkSelection, operation: BulkOperation, limit: number): Fragment {
  const { afterKeyId, throughKeyId, startTime } = operation;
  const bounds = creationBounds(selection.filter).map(({ operator, keyId }) => compareIds(sql, operator, keyId));
  const range = [
    compareIds(sql, ">", afterKeyId),
    ...(throughKeyId === null ? [] : [compareIds(sql, "<=", throughKeyId)]),
  ];
  const scans = KEY_KINDS.map(
    (kind) => sql`(
      SELECT key_id FROM api_keys
      WHERE ${allOf(sql, [sql`kind = ${kind}`, conditions(sql, selection, startTime), ...range, ...bounds])}
      ORDER BY uuid_send(key_id) LIMIT ${limit})`,
  );
  return sql`
    SELECT key_id FROM (${unionAll(sql, scans)}) AS next WHERE ${ownSession(sql)}
    ORDER BY uuid_send(key_id) LIMIT ${limit}`;
}

/**
 * Changes the keys and advances the operation in one statement, unless another call has advanced it. The operation is locked first, then
 * the keys, so that two operations never wait for each other.
 */
function advance(
  sql: Sql,
  { requestId, afterKeyId }: BulkOperation,
  many: ManyChange & BulkSelection,
  isLast: boolean,
): Fragment {
  const last = many.keyIds.at(-1) ?? afterKeyId;
  const isNext = sql`(SELECT is_next FROM operation)`;
  return sql`
    WITH operation AS (
      SELECT ${sql(OPERATION_COLUMNS)}, (after_key_id = ${afterKeyId} AND NOT done) AS is_next
      FROM bulk_changes WHERE request_id = ${requestId} FOR UPDATE
    ), ${changeKeys(sql, many, [isNext, conditions(sql, many, many.now)])}, advanced AS (
      UPDATE bulk_changes SET after_key_id = ${last}, done = ${isLast}, update_time = clock_timestamp(),
        changed_count = changed_count + (SELECT count(*) FROM changed)
      WHERE request_id = ${requestId} AND ${isNext} AND (SELECT is_permitted FROM permitted)
      RETURNING ${sql(OPERATION_COLUMNS)}
    ), state AS (
      SELECT * FROM advanced
      UNION ALL SELECT ${sql(OPERATION_COLUMNS)} FROM operation WHERE NOT EXISTS (SELECT FROM advanced)
    )
    ${selectChanged(sql, sql`, state.*`, sql`LEFT JOIN state ON true`)}`;
}

type StoredOperation = BulkOperation | { readonly requestId: null };

function toOperation(row: BulkOperation): BulkOperation {
  const { requestId, fingerprint, startTime, matchedCount, throughKeyId, afterKeyId, changedCount, done } = row;
  return { requestId, fingerprint, startTime, matchedCount, throughKeyId, afterKeyId, changedCount, done };
}

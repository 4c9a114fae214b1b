import type { Fragment, Sql } from "postgres";
import type { Change } from "../domain/change.ts";
import { KeyholdError } from "../domain/errors.ts";
import { KEY_KINDS } from "../domain/key.ts";
import type { BulkChange, BulkOperation, BulkSelection, BulkStore, NewBulkOperation } from "../keys/bulk-store.ts";
import { awaitPropagation, type ChangeCommitter } from "./change-committer.ts";
import { stillActive } from "./expiry.ts";
import { compareIds, compileFilter } from "./filter.ts";
import { allOf, unionAll } from "./fragments.ts";
import { handledBy } from "./handled-by.ts";
import { creationBounds } from "./list-keys.ts";
import type { Database } from "./pool.ts";
import { firstRow, KEY_COLUMNS } from "./rows.ts";
import { serverId, type WithServer } from "./server-position.ts";
import { type ChangedRow, setDisabled, setRevoked, toStateChange } from "./state-changes.ts";

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
  const select = (selection: BulkSelection, operation: BulkOperation, limit: number) =>
    lists.run(async (sql) => {
      const rows = await sql<{ keyId: string }[]>`${selectNext(sql, selection, operation, limit)}`;
      return rows.map(({ keyId }) => keyId);
    }, "bulk.select");
  return {
    count: (selection) => lists.run((sql) => count(sql, selection), "bulk.count"),
    find: (requestId) =>
      lists.run(async (sql) => {
        const [row] = await sql<BulkOperation[]>`
          SELECT ${sql(OPERATION_COLUMNS)} FROM bulk_changes WHERE request_id = ${requestId}`;
        return row ?? null;
      }, "bulk.find"),
    begin: (operation) => lists.run((sql) => begin(sql, operation), "bulk.begin"),
    advance: async (operation, selection, limit, now) => {
      const keyIds = operation.done ? [] : await select(selection, operation, limit);
      const step: Step = { operation, selection, keyIds, isLast: keyIds.length < limit, now };
      const committed = await changes.commit(
        async (sql, ranOn) => {
          const rows = await sql<StepRow[]>`${advance(sql, step)}`;
          ranOn(firstRow(rows).server);
          return outcomeOf(rows, selection);
        },
        {
          statement: `bulk.${selection.change.verb}`,
          isMade: (outcome) => outcome.changes.length > 0,
          invalidates: { keyIds, digests: [] },
          changesOf: (outcome) => outcome.changes,
        },
      );
      const changedKeys = ({ changes }: Outcome) => changes.map(({ key }) => key.keyId);
      const made = await awaitPropagation(committed, changedKeys);
      if (made.operation !== null) return { operation: made.operation, changed: changedKeys(made) };
      throw new KeyholdError("CONCURRENT_CHANGE", "the operation was not continued for a week; repeat the call");
    },
    caughtUp,
  };
}

/** The conditions of a selection. The filter's value may change until a key is locked, so each statement has all of them. */
function conditions(sql: Sql, { filter, filterTime, change, principal }: BulkSelection, now: Date): Fragment {
  const own = principal.keyId === undefined ? [] : [sql`key_id <> ${principal.keyId}`];
  const all = [
    compileFilter(sql, filter, filterTime),
    CHANGEABLE[change.verb](sql, now),
    handledBy(sql, principal),
    ...own,
  ];
  return allOf(sql, all);
}

const CHANGEABLE: { readonly [V in BulkChange["verb"]]: (sql: Sql, now: Date) => Fragment } = {
  revoke: (sql) => sql`revoke_time IS NULL`,
  disable: (sql, now) => sql`(${stillActive(sql, now)} AND disable_time IS NULL)`,
};

/** Before PostgreSQL 18 there is no maximum of a uuid. Its text has the same order. */
async function count(sql: Sql, selection: BulkSelection) {
  const rows = await sql<Pick<NewBulkOperation, "matchedCount" | "throughKeyId">[]>`
    SELECT count(*)::integer AS matched_count, max(key_id::text COLLATE "C") AS through_key_id FROM api_keys
    WHERE ${conditions(sql, selection, selection.filterTime)}`;
  return firstRow(rows);
}

async function begin(sql: Sql, operation: NewBulkOperation): Promise<void> {
  const { requestId, verb, fingerprint, caller, startTime, throughKeyId, matchedCount } = operation;
  await sql`
    WITH forgotten AS (
      DELETE FROM bulk_changes
      WHERE update_time < clock_timestamp() - ${RETENTION}::text::interval AND request_id <> ${requestId}
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
    SELECT key_id FROM (${unionAll(sql, scans)}) AS next
    ORDER BY uuid_send(key_id) LIMIT ${limit}`;
}

interface Step {
  readonly operation: BulkOperation;
  readonly selection: BulkSelection;
  /** The next keys, in ascending order. */
  readonly keyIds: readonly string[];
  readonly isLast: boolean;
  readonly now: Date;
}

/**
 * Changes the keys and advances the operation in one statement, unless another call has advanced it. The operation is locked first, then
 * the keys in their order, so that two operations never wait for each other. The conditions are in a CASE for the reason given at
 * `keyWhere`.
 */
function advance(sql: Sql, { operation, selection, keyIds, isLast, now }: Step): Fragment {
  const { requestId, afterKeyId } = operation;
  const last = keyIds.at(-1) ?? afterKeyId;
  return sql`
    WITH operation AS (
      SELECT ${sql(OPERATION_COLUMNS)}, (after_key_id = ${afterKeyId} AND NOT done) AS is_next
      FROM bulk_changes WHERE request_id = ${requestId} FOR UPDATE
    ), before AS (
      SELECT key_id AS before_key_id, update_time AS before_update_time FROM api_keys
      WHERE (SELECT is_next FROM operation) AND key_id = ANY (${[...keyIds]}::uuid[])
        AND CASE WHEN ${conditions(sql, selection, now)} THEN true ELSE false END
      ORDER BY key_id FOR NO KEY UPDATE
    ), changed AS (
      UPDATE api_keys SET ${setOf(sql, selection.change, now)} FROM before WHERE key_id = before_key_id
      RETURNING ${sql(KEY_COLUMNS)}, before_update_time
    ), advanced AS (
      UPDATE bulk_changes SET after_key_id = ${last}, done = ${isLast}, update_time = clock_timestamp(),
        changed_count = changed_count + (SELECT count(*) FROM changed)
      WHERE request_id = ${requestId} AND (SELECT is_next FROM operation)
      RETURNING ${sql(OPERATION_COLUMNS)}
    ), state AS (
      SELECT * FROM advanced
      UNION ALL SELECT ${sql(OPERATION_COLUMNS)} FROM operation WHERE NOT EXISTS (SELECT FROM advanced)
    )
    SELECT ${serverId(sql)} AS server, state.*, changed.*
    FROM (VALUES (1)) AS one LEFT JOIN state ON true LEFT JOIN changed ON true`;
}

function setOf(sql: Sql, change: BulkChange, now: Date): Fragment {
  if (change.verb === "revoke") return setRevoked(sql, change, now);
  return setDisabled(sql, change.reason, now);
}

interface Outcome {
  /** Null: it does not exist. */
  readonly operation: BulkOperation | null;
  readonly changes: readonly Change[];
}

/** The operation with one of the keys; with none, if none was changed. */
type StepRow = WithServer<BulkOperation & (ChangedRow | { readonly keyId: null })>;

function outcomeOf(rows: readonly StepRow[], { change: { verb }, principal }: BulkSelection): Outcome {
  const changes = rows.flatMap((row) => (row.keyId === null ? [] : [toStateChange(verb, row, principal)]));
  const { requestId, fingerprint, startTime, matchedCount, throughKeyId, afterKeyId, changedCount, done } =
    firstRow(rows);
  if (requestId === null) return { operation: null, changes };
  return {
    operation: { requestId, fingerprint, startTime, matchedCount, throughKeyId, afterKeyId, changedCount, done },
    changes,
  };
}

import type { Fragment, Sql } from "postgres";
import { KeyholdError } from "../domain/errors.ts";
import { KEY_KINDS } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { manageableScopes } from "../keys/authorization.ts";
import type { BulkOperation, BulkSelection, BulkStore, ManyChange, NewBulkOperation } from "../keys/ports.ts";
import type { Commit } from "./cluster/change-committer.ts";
import { callContext } from "./connection/call-context.ts";
import { firstRow } from "./connection/first-row.ts";
import { allOf, unionAll } from "./connection/fragments.ts";
import { ownSession } from "./connection/session-settings.ts";
import type { KeyDatabases } from "./key-store.ts";
import { isVisible, valuesOf } from "./keys/authorization.ts";
import { changeable, changeKeys, commitMany, selectChanged } from "./keys/change-many.ts";
import { compareIds, compileFilter } from "./lists/filter.ts";
import { creationBounds } from "./lists/list-keys.ts";

const OPERATION_COLUMNS = [
  ...["requestId", "fingerprint", "startTime", "matchedCount", "throughKeyId", "afterKeyId", "changedCount", "done"],
] as const satisfies readonly (keyof BulkOperation)[];

/** After this an operation is forgotten. */
const RETENTION = "7 days";

/**
 * Stores bulk operations in PostgreSQL, and changes the keys of an operation or the descendants of a token. `commitBulk`
 * commits over `lists`. `caughtUp` resolves when this node has received the notifications of everything that is committed.
 */
export function createBulkStore(
  { lists, reads }: KeyDatabases,
  commit: Commit,
  commitBulk: Commit,
  caughtUp: () => Promise<void>,
): BulkStore {
  return {
    count: (selection) => lists.run((sql) => count(sql, selection), "bulk.count"),
    find: (requestId) => lists.run((sql) => findOperation(sql, requestId), "bulk.find"),
    begin: (operation) => lists.run((sql) => begin(sql, operation), "bulk.begin"),
    select: (operation, selection, limit) =>
      lists.run((sql) => keyIdsOf(sql, selectNext(sql, selection, operation, limit)), "bulk.select"),
    advance: async (operation, many, isLast) => {
      const name = `bulk.${many.change.verb}`;
      const statement = (sql: Sql) => advance(sql, operation, many, isLast);
      const { head, changed } = await commitMany<StoredOperation>(commitBulk, many, name, statement);
      if (head.requestId !== null) return { operation: head, changed };
      throw new KeyholdError("CONCURRENT_CHANGE", "the operation was idle for a week; start it again");
    },
    caughtUp,
    findDescendants: (keyId, many, limit) =>
      reads.run((sql) => keyIdsOf(sql, selectDescendants(sql, keyId, many, limit)), "keys.find_descendants"),
    changeDescendants: async (many) => {
      const { change, principal, now } = many;
      const statement = (sql: Sql) =>
        sql`WITH ${changeKeys(sql, many, changeable(sql, change, principal, now))} ${selectChanged(sql, callContext(principal))}`;
      return (await commitMany(commit, many, `keys.${change.verb}_descendants`, statement)).changed;
    },
    countDescendants: (keyId, principal) =>
      reads.run((sql) => countDescendants(sql, keyId, principal), "keys.count_descendants"),
  };
}

async function keyIdsOf(sql: Sql, statement: Fragment): Promise<string[]> {
  const rows = await sql<{ keyId: string }[]>`${statement}`;
  return rows.map(({ keyId }) => keyId);
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

async function findOperation(sql: Sql, requestId: string): Promise<BulkOperation | null> {
  const [operation] = await sql<BulkOperation[]>`
    SELECT ${sql(OPERATION_COLUMNS)} FROM bulk_changes WHERE request_id = ${requestId} AND ${ownSession(sql)}`;
  return operation ?? null;
}

async function begin(sql: Sql, operation: NewBulkOperation): Promise<BulkOperation> {
  const { requestId, verb, fingerprint, caller, startTime, throughKeyId, matchedCount } = operation;
  const rows = await sql<BulkOperation[]>`
    WITH forgotten AS (
      DELETE FROM bulk_changes
      WHERE update_time < clock_timestamp() - ${RETENTION}::text::interval AND request_id <> ${requestId} AND ${ownSession(sql)}
    )
    INSERT INTO bulk_changes (request_id, verb, fingerprint, caller, start_time, through_key_id, matched_count, done)
    VALUES (${requestId}, ${verb}, ${fingerprint}, ${caller}, ${startTime}, ${throughKeyId}, ${matchedCount}, ${matchedCount === 0})
    ON CONFLICT (request_id) DO UPDATE SET request_id = bulk_changes.request_id RETURNING ${sql(OPERATION_COLUMNS)}`;
  return firstRow(rows);
}

/** Selects the next keys by two ordered scans, because the list indexes begin with the kind (migration 0003). */
function selectNext(sql: Sql, selection: BulkSelection, operation: BulkOperation, limit: number): Fragment {
  const { afterKeyId, throughKeyId, startTime } = operation;
  const bounds = creationBounds(sql, selection.filter);
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
    ${selectChanged(sql, callContext(many.principal, requestId), sql`, state.*`, sql`LEFT JOIN state ON true`)}`;
}

type StoredOperation = BulkOperation | { readonly requestId: null };

/** Whether the principal may change any key is known before the search, which then may end early. */
function selectDescendants(
  sql: Sql,
  keyId: string,
  { change, principal, now }: Omit<ManyChange, "keyIds">,
  limit: number,
): Fragment {
  const mayChangeAny = manageableScopes(principal) === "all" && principal.restrictions.actorIds === null;
  return sql`
    SELECT key_id FROM ${descendantsOf(sql, keyId, mayChangeAny ? limit : null)}
    WHERE ${allOf(sql, [ownSession(sql), ...changeable(sql, change, principal, now)])} LIMIT ${limit}`;
}

async function countDescendants(sql: Sql, keyId: string, principal: Principal): Promise<number> {
  const rows = await sql<{ count: number }[]>`
    SELECT count(*)::integer AS count FROM ${descendantsOf(sql, keyId, null)}
    WHERE ${ownSession(sql)} AND ${isVisible(sql, valuesOf(principal))}`;
  return firstRow(rows).count;
}

/** The rows of the descendants that are not revoked, at most `max`, by the indexes of migrations 0015 and 0022. */
function descendantsOf(sql: Sql, keyId: string, max: number | null): Fragment {
  return sql`descendants_of(${keyId}, ${max}) AS key_id JOIN api_keys USING (key_id)`;
}

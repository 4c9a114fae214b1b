import type { Fragment, Sql } from "postgres";
import type { ListQuery } from "../keys/store.ts";
import { creationBounds } from "./creation-bounds.ts";
import { compareIds, compileFilter } from "./filter.ts";
import { KEY_COLUMNS, type KeyRow } from "./rows.ts";

/** The keys of one page, newest first. */
export function listKeys(sql: Sql, list: ListQuery, now: Date): PromiseLike<KeyRow[]> {
  return sql<KeyRow[]>`${selectPage(sql, list, now)}`;
}

/**
 * The statement for one page. Its order is written as the indexes of lists have it (migration 0003), and it begins where the
 * page before ended, so what it costs does not depend on how many keys are newer.
 */
export function selectPage(sql: Sql, list: ListQuery, now: Date): Fragment {
  return sql`
    SELECT ${sql(KEY_COLUMNS)} FROM api_keys
    WHERE ${conditions(sql, list, now).map((condition, index) => (index === 0 ? condition : sql`AND ${condition}`))}
    ORDER BY uuid_send(key_id) DESC
    LIMIT ${list.limit}`;
}

function conditions(sql: Sql, { kind, filter, before }: ListQuery, now: Date): Fragment[] {
  const start = before === null ? [] : [compareIds(sql, "<", before)];
  const bounds = creationBounds(filter).map(({ operator, keyId }) => compareIds(sql, operator, keyId));
  return [sql`kind = ${kind}`, compileFilter(sql, filter, now), ...start, ...bounds];
}

import type { Fragment, Sql } from "postgres";
import type { ApiKey } from "../domain/key.ts";
import type { ListQuery } from "../keys/store.ts";
import { creationBounds } from "./creation-bounds.ts";
import { compareIds, compileFilter } from "./filter.ts";
import { KEY_COLUMNS } from "./rows.ts";

/** Returns the keys of one page, newest first. */
export function listKeys(sql: Sql, list: ListQuery, now: Date): PromiseLike<ApiKey[]> {
  return sql<ApiKey[]>`${selectPage(sql, list, now)}`;
}

/**
 * Returns the statement of one page. It is ordered like the list indexes (migration 0003) and starts at the end of the previous page
 * (keyset pagination), so its cost does not depend on the number of newer keys.
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

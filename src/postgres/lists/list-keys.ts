import type { Fragment, ISql, Sql } from "postgres";
import { KEY_KINDS, type KeyKind } from "../../domain/key.ts";
import type { KeyFilter } from "../../keys/filter.ts";
import type { ListedKey, ListQuery } from "../../keys/ports.ts";
import { pageInTime } from "../connection/errors.ts";
import { allOf, unionAll } from "../connection/fragments.ts";
import { ownSession } from "../connection/session-settings.ts";
import { isRestrictedWithin } from "../keys/authorization.ts";
import { type KeyRow, toApiKey } from "../keys/rows.ts";
import { compareIds, compileFilter } from "./filter.ts";
import { type ListPart, mergedBy, mergedColumns, pageColumns, partsOf, sortedBy, within } from "./order.ts";

const TOO_SLOW =
  "selects too few of too many keys; add a condition on actor_id, name, create_time or a metadata entry, or order by the field that it restricts, such as expire_time";

/** Returns the keys of one page. Throws `LIST_TOO_SLOW` if the database finds the keys of a filter too slowly. */
export function listKeys(sql: Sql, list: ListQuery, now: Date): Promise<ListedKey[]> {
  const page = readPage(sql, list, now);
  return list.filter.node === "all" ? page : pageInTime(page, "filter", TOO_SLOW);
}

async function readPage(sql: Sql, list: ListQuery, now: Date): Promise<ListedKey[]> {
  const keys: ListedKey[] = [];
  const start = performance.now();
  for (const part of partsOf(list)) {
    const limit = list.limit - keys.length;
    if (limit === 0) break;
    const select = selectPart(sql, { ...list, limit }, part, now);
    const rows = await readInTime(sql, performance.now() - start, (session) => session<OrderedRow[]>`${select}`);
    keys.push(...rows.map((row) => ({ ...toApiKey(row), orderValue: row.orderValue ?? null })));
  }
  return keys;
}

/** Without the second column if the list is ordered by `create_time`. */
type OrderedRow = KeyRow & { readonly orderValue?: string | null };

/** Milliseconds that earlier parts may take in addition to the statement timeout. A call may take a second more than a statement (`pool.ts`). */
const SPARE = 500;

/** Reads a part within the statement timeout, less the milliseconds that earlier parts took: it applies to the page. */
function readInTime<T>(sql: Sql, elapsed: number, read: (sql: ISql) => Promise<T>): Promise<T> {
  if (elapsed < SPARE) return read(sql);
  const left = sql`extract(epoch FROM current_setting('statement_timeout')::interval) * 1000 - ${Math.ceil(elapsed)}::int`;
  return sql.begin(async (transaction) => {
    await transaction`SELECT set_config('statement_timeout', greatest(${left}, 1)::int::text, true)`;
    return read(transaction);
  }) as Promise<T>;
}

/**
 * Returns the statement of the keys of one part. It has the order of an index and starts at the end of the previous page (keyset pagination),
 * so its cost does not depend on the number of keys before it. The indexes begin with the kind: a page of both kinds merges two scans.
 */
export function selectPart(sql: Sql, list: ListQuery, part: ListPart, now: Date): Fragment {
  const { actorIds, order } = list;
  if (actorIds !== null && order.field === "create_time") return selectOfActors(sql, list, part, actorIds, now);
  const owned =
    actorIds === null ? [] : [sql`actor_id = ANY (${[...actorIds]}::text[])`, isRestrictedWithin(sql, [...actorIds])];
  const shared = [...owned, ...conditions(sql, list, part, now)];
  const ofKind = (kind: KeyKind) => [sql`kind = ${kind}`, ...shared];
  if (list.kind !== null)
    return orderedScan(sql, list, [ownSession(sql), ...ofKind(list.kind)], pageColumns(sql, order));
  const columns = mergedColumns(sql, order);
  const scans = KEY_KINDS.map((kind) => sql`(${orderedScan(sql, list, ofKind(kind), columns)})`);
  return merge(sql, list, sql`(${unionAll(sql, scans)}) AS keys`);
}

/** Scans the keys of each actor apart: with a list of actors in its condition, an index does not return the order of the page. */
function selectOfActors(sql: Sql, list: ListQuery, part: ListPart, actorIds: readonly string[], now: Date): Fragment {
  const kinds = list.kind === null ? [...KEY_KINDS] : [list.kind];
  const owners = sql`
    unnest(${kinds}::text[]) AS owner_kinds (owner_kind) CROSS JOIN unnest(${[...new Set(actorIds)]}::text[]) AS owners (owner_id)`;
  const isOwned = [sql`kind = owner_kind`, sql`actor_id = owner_id`, isRestrictedWithin(sql, [...actorIds])];
  const all = [...isOwned, ...conditions(sql, list, part, now)];
  const scan = orderedScan(sql, list, all, mergedColumns(sql, list.order));
  return merge(sql, list, sql`${owners} CROSS JOIN LATERAL (${scan}) AS keys`);
}

function orderedScan(
  sql: Sql,
  { order, limit }: ListQuery,
  conditions: readonly Fragment[],
  columns: Fragment,
): Fragment {
  return sql`
    SELECT ${columns} FROM api_keys
    WHERE ${allOf(sql, conditions)}
    ORDER BY ${sortedBy(sql, order)}
    LIMIT ${limit}`;
}

/** Selects the first of `keys`, which are scans of `mergedColumns` in the order of the page. */
function merge(sql: Sql, { order, limit }: ListQuery, keys: Fragment): Fragment {
  return sql`
    SELECT ${pageColumns(sql, order)} FROM ${keys} WHERE ${ownSession(sql)} ORDER BY ${mergedBy(sql, order)} LIMIT ${limit}`;
}

function conditions(sql: Sql, { filter, order }: ListQuery, part: ListPart, now: Date): Fragment[] {
  return [compileFilter(sql, filter, now, part.known), ...within(sql, order, part), ...creationBounds(sql, filter)];
}

/** Milliseconds. A key id starts with its creation time; the clock may be set between that and `create_time`. */
const SLACK = 60_000;

/**
 * Returns the conditions on `key_id`, the order of lists, that follow from conditions on `create_time` which the filter requires, so that
 * the index scan is bounded. The filter must still be applied.
 */
export function creationBounds(sql: Sql, filter: KeyFilter): Fragment[] {
  if (filter.node === "and") return filter.operands.flatMap((operand) => creationBounds(sql, operand));
  if (filter.node !== "time" || filter.field !== "create_time") return [];
  const { operator, value } = filter;
  const [from, to] = [Date.parse(value) - SLACK, Date.parse(value) + SLACK].map(firstIdAt);
  return [
    ...(operator.startsWith("<") || from === undefined ? [] : [compareIds(sql, ">=", from)]),
    ...(operator.startsWith(">") || to === undefined ? [] : [compareIds(sql, "<", to)]),
  ];
}

/** Returns the smallest version 7 UUID of a time in milliseconds (RFC 9562 §5.7: the first 48 bits are the time). */
function firstIdAt(time: number): string {
  const digits = Math.max(time, 0).toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}-0000-0000-000000000000`;
}

import type { Fragment, Sql } from "postgres";
import { KEY_KINDS, type KeyKind } from "../../domain/key.ts";
import type { Comparison, Filter, Operator } from "../../keys/filter/filter.ts";
import type { ListQuery } from "../../keys/ports.ts";
import { markPrepared } from "../connection/connect.ts";
import { allOf, unionAll } from "../connection/fragments.ts";
import { ownSession } from "../connection/session-settings.ts";
import { isRestrictedWithin } from "../keys/authorization.ts";
import { KEY_COLUMNS, type KeyRow } from "../keys/rows.ts";
import { compareIds, compileFilter } from "./filter.ts";
import { selectByWeek, weekRangeOf } from "./list-by-week.ts";
import { createPreparedShapes } from "./prepared-shapes.ts";

/** Returns the keys of one page, newest first. */
export function listKeys(sql: Sql, list: ListQuery, now: Date): PromiseLike<KeyRow[]> {
  return sql<KeyRow[]>`${selectPage(sql, list, now)}`;
}

/** Returns `listKeys` that has the statements prepared whose plan costs more than their execution, and does not depend on the values. */
export function createLists(): typeof listKeys {
  const isPrepared = createPreparedShapes();
  return (sql, list, now) => {
    const page = sql<KeyRow[]>`${selectPage(sql, list, now)}`;
    return list.actorIds === null && weekRangeOf(list.filter) !== null && isPrepared(list) ? markPrepared(page) : page;
  };
}

/**
 * Returns the statement of one page. It is ordered like the list indexes (migration 0003) and starts at the end of the previous page
 * (keyset pagination), so its cost does not depend on the number of newer keys. The indexes begin with the kind: a page of both kinds
 * merges two scans.
 */
export function selectPage(sql: Sql, list: ListQuery, now: Date): Fragment {
  if (list.actorIds !== null) return selectOfActors(sql, list, list.actorIds, now);
  const kinds = list.kind === null ? KEY_KINDS : [list.kind];
  const weeks = weekRangeOf(list.filter);
  if (weeks !== null) return selectByWeek(sql, kinds, weeks, conditions(sql, list, now), list.limit);
  if (list.kind !== null) return orderedScan(sql, [ownSession(sql), ...ofKind(sql, list, list.kind, now)], list.limit);
  const scans = KEY_KINDS.map(
    (kind) => sql`(${orderedScan(sql, ofKind(sql, list, kind, now), list.limit, placed(sql))})`,
  );
  return merge(sql, sql`(${unionAll(sql, scans)}) AS keys`, list.limit);
}

function ofKind(sql: Sql, list: ListQuery, kind: KeyKind, now: Date): Fragment[] {
  return [sql`kind = ${kind}`, ...conditions(sql, list, now)];
}

function kindsOf(sql: Sql, { kind }: ListQuery): Fragment {
  return sql`unnest(${kind === null ? [...KEY_KINDS] : [kind]}::text[]) AS owner_kinds (owner_kind)`;
}

/** Scans the keys of each actor apart: with a list of actors in its condition, an index does not return the order of the page. */
function selectOfActors(sql: Sql, list: ListQuery, actorIds: readonly string[], now: Date): Fragment {
  const owners = sql`
    ${kindsOf(sql, list)} CROSS JOIN unnest(${[...new Set(actorIds)]}::text[]) AS owners (owner_id)`;
  const isOwned = [sql`kind = owner_kind`, sql`actor_id = owner_id`, isRestrictedWithin(sql, actorIds)];
  const scan = orderedScan(sql, [...isOwned, ...conditions(sql, list, now)], list.limit, placed(sql));
  return merge(sql, sql`${owners} CROSS JOIN LATERAL (${scan}) AS keys`, list.limit);
}

function orderedScan(
  sql: Sql,
  conditions: readonly Fragment[],
  limit: number,
  columns = sql`${sql(KEY_COLUMNS)}`,
): Fragment {
  return sql`
    SELECT ${columns} FROM api_keys
    WHERE ${allOf(sql, conditions)}
    ORDER BY uuid_send(key_id) DESC
    LIMIT ${limit}`;
}

/**
 * The columns of the scans of a merge. The planner sees the order of a scan only in a column, and otherwise sorts all rows of all scans.
 * Columns that the merge does not select are not read; to name the others costs the driver time.
 */
const placed = (sql: Sql) => sql`*, uuid_send(key_id) AS place`;

/** Selects the newest of `keys`, which are scans that have the order of the page, and the column `place`, each. */
function merge(sql: Sql, keys: Fragment, limit: number): Fragment {
  return sql`SELECT ${sql(KEY_COLUMNS)} FROM ${keys} WHERE ${ownSession(sql)} ORDER BY place DESC LIMIT ${limit}`;
}

function conditions(sql: Sql, { filter, before }: ListQuery, now: Date): Fragment[] {
  const start = before === null ? [] : [compareIds(sql, "<", before)];
  const bounds = creationBounds(filter).map(({ operator, keyId }) => compareIds(sql, operator, keyId));
  return [compileFilter(sql, filter, now), ...start, ...bounds];
}

/** A condition on `key_id` that holds for every key that the filter matches. */
interface IdBound {
  readonly operator: "<" | ">=";
  /** A UUID. */
  readonly keyId: string;
}

/** Milliseconds. A key id starts with its creation time; the clock may be set between that and `create_time`. */
const SLACK = 60_000;

/**
 * Returns the conditions on `key_id`, the order of lists, that follow from conditions on `create_time` which the filter requires, so that
 * the index scan is bounded. The filter must still be applied.
 */
export function creationBounds(filter: Filter): IdBound[] {
  if (filter.node === "and") return filter.operands.flatMap(creationBounds);
  return filter.node === "time" && filter.field === "create_time" ? BOUNDS[filter.operator](filter) : [];
}

type TimeComparison = Extract<Comparison, { node: "time" }>;
type Bounds = (comparison: TimeComparison) => IdBound[];

const madeBefore: Bounds = ({ value }) => [{ operator: "<", keyId: firstIdAt(Date.parse(value) + SLACK) }];
const madeAfter: Bounds = ({ value }) => [{ operator: ">=", keyId: firstIdAt(Date.parse(value) - SLACK) }];

const BOUNDS: { readonly [O in Operator]: Bounds } = {
  "=": (comparison) => [...madeAfter(comparison), ...madeBefore(comparison)],
  "<": madeBefore,
  "<=": madeBefore,
  ">": madeAfter,
  ">=": madeAfter,
};

/** Returns the smallest version 7 UUID of a time in milliseconds (RFC 9562 §5.7: the first 48 bits are the time). */
function firstIdAt(time: number): string {
  const digits = Math.max(time, 0).toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}-0000-0000-000000000000`;
}

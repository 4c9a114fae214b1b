import type { Fragment, PendingQuery, Sql } from "postgres";
import type { AuditEvent } from "../../audit/event.ts";
import type { AuditStore, EventOrder, EventQuery, LogBounds, Sequenced } from "../../audit/log.ts";
import { pageInTime } from "../connection/errors.ts";
import { firstRow } from "../connection/first-row.ts";
import { allOf } from "../connection/fragments.ts";
import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";
import { compileEventFilter } from "./filter.ts";

/** Events of one run of the sequencer, which holds its lock meanwhile. */
const MAX_SEQUENCED = 1_000;

const BY_SEQ: EventOrder = { field: "seq", isDescending: false };

const TOO_SLOW =
  "selects too few of too many events; order by time, and add a condition on key_id, actor_id, caller or time";

/** Creates the store of the audit log in PostgreSQL. Events are written by the triggers of migration 0026 only. */
export function createAuditStore({ database, lists }: Readonly<Record<"database" | "lists", Database>>): AuditStore {
  return {
    sequence: async () => {
      let [assigned, lag] = [0, 0];
      for (let isFull = true; isFull; ) {
        const run = await database.run(sequence, "audit.sequence");
        assigned += run.assigned;
        lag = Math.max(lag, run.lag);
        isFull = run.isFull;
      }
      return { assigned, lag };
    },
    bounds: () => database.run(readBounds, "audit.bounds"),
    deny: async (denied) => {
      await database.run(
        (sql) => sql`SELECT audit_deny(${JSON.stringify(denied)}::text::jsonb) WHERE ${ownSession(sql)}`,
        "audit.deny",
      );
    },
    recordExceeded: async (exceeded) => {
      await database.run(
        (sql) => sql`SELECT audit_limits(${JSON.stringify(exceeded)}::text::jsonb) WHERE ${ownSession(sql)}`,
        "audit.limits",
      );
    },
    list: (query) => {
      const page = lists.run((sql) => selectEvents(sql, query), "audit.list");
      return query.filter.node === "all" ? page : pageInTime(page, "filter", TOO_SLOW);
    },
    read: (seq, limit) => {
      const query: EventQuery = { filter: { node: "all" }, order: BY_SEQ, after: { seq: seq - 1 }, limit };
      return lists.run((sql) => selectEvents(sql, query), "audit.read");
    },
  };
}

/** Runs the sequencer once. `isFull`: there may be more events. */
export async function sequence(sql: Sql) {
  const rows = await sql<(Sequenced & { readonly isFull: boolean })[]>`
    SELECT assigned, lag, assigned = ${MAX_SEQUENCED} AS is_full FROM audit_sequence(${MAX_SEQUENCED}) WHERE ${ownSession(sql)}`;
  return firstRow(rows);
}

async function readBounds(sql: Sql): Promise<LogBounds> {
  const rows = await sql<LogBounds[]>`
    SELECT size::numeric AS size, coalesce((SELECT min(seq) FROM audit_events), size)::numeric AS first FROM audit_log WHERE ${ownSession(sql)}`;
  return firstRow(rows);
}

/**
 * Returns the events of a page in the order of an index, from the end of the previous page. `ORDER BY seq` would mean the converted column, which
 * no index has.
 */
export function selectEvents(sql: Sql, { filter, order, after, limit }: EventQuery): PendingQuery<AuditEvent[]> {
  const [operator, direction] = order.isDescending ? [sql`<`, sql`DESC`] : [sql`>`, sql`ASC`];
  const start = after && startOf(sql, order.field, operator, after.seq);
  return sql<AuditEvent[]>`
    SELECT seq::numeric AS seq, time, action, key_id, actor_id, resource_id, call, before, after, salt FROM audit_events
    WHERE ${allOf(sql, [ownSession(sql), ...(start === null ? [] : [start]), compileEventFilter(sql, filter)])}
    ORDER BY ${order.field === "seq" ? sql`` : sql`time ${direction},`} audit_events.seq ${direction} LIMIT ${limit}`;
}

/**
 * With scalar operands, the comparison of rows is a condition of the index. It must come before a condition on the time, because a scan begins at
 * the first of both.
 */
function startOf(sql: Sql, field: EventOrder["field"], operator: Fragment, seq: number): Fragment {
  if (field === "seq") return sql`seq ${operator} ${seq}`;
  return sql`(time, seq) ${operator} ((SELECT time FROM audit_events WHERE seq = ${seq}), ${seq})`;
}

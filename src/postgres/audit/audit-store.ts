import type { Fragment, Sql } from "postgres";
import type { AuditEvent } from "../../audit/event.ts";
import type { AuditStore, EventQuery, LogBounds, Sequenced } from "../../audit/log.ts";
import { fieldError } from "../../domain/errors.ts";
import { codeOf, QUERY_CANCELED } from "../connection/errors.ts";
import { firstRow } from "../connection/first-row.ts";
import { allOf } from "../connection/fragments.ts";
import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";
import { compileEventFilter } from "./filter.ts";

/** Events of one run of the sequencer, which holds its lock meanwhile. */
const MAX_SEQUENCED = 1_000;

const TOO_SLOW = "selects too few of too many events; add a condition on key_id, actor_id, caller or time";

/** Creates the store of the audit log in PostgreSQL. Events are written by the triggers of migration 0026 only. */
export function createAuditStore({ database, lists }: Readonly<Record<"database" | "lists", Database>>): AuditStore {
  return {
    sequence: async () => {
      let [assigned, lag] = [0, 0];
      for (;;) {
        const run = await database.run(sequence, "audit.sequence");
        assigned += run.assigned;
        lag = Math.max(lag, run.lag);
        if (run.assigned < MAX_SEQUENCED) return { assigned, lag };
      }
    },
    bounds: () => database.run(readBounds, "audit.bounds"),
    list: async (query) => {
      try {
        return await lists.run((sql) => list(sql, query), "audit.list");
      } catch (error) {
        if (codeOf(error) !== QUERY_CANCELED || query.filter.node === "all") throw error;
        throw fieldError("LIST_TOO_SLOW", "filter", TOO_SLOW);
      }
    },
    read: (seq, limit) =>
      lists.run(
        (sql) => sql<AuditEvent[]>`
          SELECT ${COLUMNS(sql)} FROM audit_events WHERE seq >= ${seq} AND ${ownSession(sql)} ORDER BY seq LIMIT ${limit}`,
        "audit.read",
      ),
  };
}

async function sequence(sql: Sql): Promise<Sequenced> {
  const rows = await sql<
    Sequenced[]
  >`SELECT assigned, lag FROM audit_sequence(${MAX_SEQUENCED}) WHERE ${ownSession(sql)}`;
  return firstRow(rows);
}

async function readBounds(sql: Sql): Promise<LogBounds> {
  const rows = await sql<LogBounds[]>`
    SELECT size::numeric AS size, coalesce((SELECT min(seq) FROM audit_events), size)::numeric AS first FROM audit_log WHERE ${ownSession(sql)}`;
  return firstRow(rows);
}

const COLUMNS = (sql: Sql): Fragment =>
  sql`seq::numeric AS seq, time, action, key_id, actor_id, resource_id, call, before, after`;

/** In the order of an index, from the end of the previous page. */
function list(sql: Sql, { filter, order, after, limit }: EventQuery): PromiseLike<AuditEvent[]> {
  const [operator, direction] = order.isDescending ? [sql`<`, sql`DESC`] : [sql`>`, sql`ASC`];
  const place = order.field === "seq" ? sql`seq` : sql`time, seq`;
  const start = after && sql`(${place}) ${operator} (SELECT ${place} FROM audit_events WHERE seq = ${after.seq})`;
  return sql<AuditEvent[]>`
    SELECT ${COLUMNS(sql)} FROM audit_events
    WHERE ${allOf(sql, [ownSession(sql), compileEventFilter(sql, filter), ...(start === null ? [] : [start])])}
    ORDER BY ${order.field === "seq" ? sql`` : sql`time ${direction},`} seq ${direction} LIMIT ${limit}`;
}

import type { Fragment, PendingQuery, Sql } from "postgres";
import type { Actor } from "../../actors/actor.ts";
import type { ActorStore } from "../../actors/store.ts";
import type { Principal } from "../../domain/principal.ts";
import { awaitPropagation, type Commit } from "../cluster/change-committer.ts";
import { callContext } from "../connection/call-context.ts";
import { pageInTime } from "../connection/errors.ts";
import { firstRow } from "../connection/first-row.ts";
import type { Database } from "../connection/pool.ts";
import { type WithServer, withServer } from "../connection/server-position.ts";
import { ownSession } from "../connection/session-settings.ts";
import { forward } from "../keys/change-one.ts";
import { adjustBucket, adjustedQuotas, hasQuota } from "../keys/quota-adjustment.ts";
import { limitsOfRow, type StoredLimits } from "../keys/rows.ts";
import { toStoredLimit, toStoredQuota } from "../keys/stored-limits.ts";
import { compileActorFilter } from "./actor-filter.ts";

const TOO_SLOW = "selects too few of too many actors; add a condition on actor_id";

type ActorRow = Omit<Actor, keyof StoredLimits> & StoredLimits;

/** Creates the store of actors in PostgreSQL. Triggers notify all nodes of a change, and write its event (migration 0035). */
export function createActorStore(
  { lists, reads }: Readonly<Record<"lists" | "reads", Database>>,
  commit: Commit,
): ActorStore {
  const change = async (
    name: string,
    actorId: string,
    principal: Principal,
    statement: (sql: Sql) => Fragment,
    before: (sql: Sql) => Fragment = (sql) => sql``,
  ) => {
    const work = async (sql: Sql, ranOn: (server: string) => void) => {
      const call = callContext(principal);
      const row = firstRow(await sql<WithServer<ActorRow>[]>`${withServer(sql, statement(sql), before(sql), call)}`);
      ranOn(row.server);
      return row;
    };
    const invalidates = { keyIds: [], digests: [], actorIds: [actorId] };
    return awaitPropagation(await commit(work, { statement: `actors.${name}`, invalidates }));
  };
  const select = (sql: Sql, condition: Fragment, limit: number): PendingQuery<ActorRow[]> => sql`
    SELECT ${columns(sql)} FROM actors WHERE ${condition} AND ${ownSession(sql)} ORDER BY actor_id LIMIT ${limit}`;
  return {
    find: async (actorId) => {
      const [row] = await reads.run((sql) => select(sql, sql`actor_id = ${actorId}`, 1), "actors.find");
      return row === undefined ? null : actorOf(row);
    },
    list: async ({ filter, after, limit }, { actorIds }) => {
      const condition = (sql: Sql) => sql`
        ${after === null ? sql`true` : sql`actor_id > ${after}`}
        AND ${actorIds === null ? sql`true` : sql`actor_id = ANY (${[...actorIds]}::text[])`}
        AND ${compileActorFilter(sql, filter)}`;
      const page = lists.run((sql) => select(sql, condition(sql), limit), "actors.list");
      return (await (filter.node === "all" ? page : pageInTime(page, "filter", TOO_SLOW))).map(actorOf);
    },
    put: async (actorId, { rateLimits, quotas }, time, principal) => {
      const [limits, ofCalendar] = [jsonOf(rateLimits?.map(toStoredLimit)), jsonOf(quotas?.map(toStoredQuota))];
      const statement = (sql: Sql) => sql`
        INSERT INTO actors AS stored (actor_id, rate_limits, quotas, create_time, update_time)
        VALUES (${actorId}, ${limits}::text::jsonb, ${ofCalendar}::text::jsonb, ${time}::timestamptz, ${time}::timestamptz)
        ON CONFLICT (actor_id) DO UPDATE SET update_time = excluded.update_time,
          rate_limits = ${rateLimits === undefined ? sql`stored.rate_limits` : sql`excluded.rate_limits`},
          quotas = ${quotas === undefined ? sql`stored.quotas` : sql`excluded.quotas`}
        RETURNING ${columns(sql)}`;
      return actorOf(await change("put", actorId, principal, statement));
    },
    adjustQuota: async (actorId, adjustment, now, principal) => {
      const before = (sql: Sql) => sql`
        updated AS (
          UPDATE actors SET quotas = ${adjustedQuotas(sql, { ...adjustment, now })}, update_time = ${forward(sql, now)}
          WHERE actor_id = ${actorId} AND ${hasQuota(sql, adjustment.quota)} RETURNING ${columns(sql)}
        ),
        ${adjustBucket(sql, sql`${`actor/${actorId}`}::text`, adjustment)}`;
      const statement = (sql: Sql) => sql`SELECT * FROM updated`;
      const row = await change("adjustQuota", actorId, principal, statement, before);
      return row.actorId === null ? null : actorOf(row);
    },
    delete: async (actorId, principal) => {
      const statement = (sql: Sql) => sql`DELETE FROM actors WHERE actor_id = ${actorId} RETURNING ${columns(sql)}`;
      return (await change("delete", actorId, principal, statement)).actorId !== null;
    },
  };
}

function columns(sql: Sql): Fragment {
  return sql`actor_id, rate_limits, quotas, create_time, update_time`;
}

/** Null for none. */
function jsonOf(limits: readonly object[] | null | undefined): string | null {
  return limits ? JSON.stringify(limits) : null;
}

function actorOf({ actorId, createTime, updateTime, ...limits }: ActorRow): Actor {
  return { actorId, ...limitsOfRow(limits), createTime, updateTime };
}

import type { Fragment, PendingQuery, Sql } from "postgres";
import type { Actor } from "../../actors/actor.ts";
import type { ActorStore } from "../../actors/store.ts";
import type { Principal } from "../../domain/principal.ts";
import { awaitPropagation, type Commit } from "../cluster/change-committer.ts";
import { callContext } from "../connection/call-context.ts";
import { firstRow } from "../connection/first-row.ts";
import type { Database } from "../connection/pool.ts";
import { type WithServer, withServer } from "../connection/server-position.ts";
import { ownSession } from "../connection/session-settings.ts";
import { fromStoredLimit, type StoredLimit, toStoredLimit } from "../keys/stored-limits.ts";

type ActorRow = Omit<Actor, "rateLimits"> & { readonly rateLimits: readonly StoredLimit[] | null };

/** Creates the store of actors in PostgreSQL. Triggers notify all nodes of a change, and write its event (migration 0035). */
export function createActorStore(
  { lists, reads }: Readonly<Record<"lists" | "reads", Database>>,
  commit: Commit,
): ActorStore {
  const change = async (name: string, actorId: string, principal: Principal, statement: (sql: Sql) => Fragment) => {
    const work = async (sql: Sql, ranOn: (server: string) => void) => {
      const call = callContext(principal);
      const row = firstRow(await sql<WithServer<ActorRow>[]>`${withServer(sql, statement(sql), sql``, call)}`);
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
    list: async (after, limit, { actorIds }) => {
      const condition = (sql: Sql) => sql`
        ${after === null ? sql`true` : sql`actor_id > ${after}`}
        AND ${actorIds === null ? sql`true` : sql`actor_id = ANY (${[...actorIds]}::text[])`}`;
      return (await lists.run((sql) => select(sql, condition(sql), limit), "actors.list")).map(actorOf);
    },
    put: async (actorId, { rateLimits }, time, principal) => {
      const limits = rateLimits === null ? null : JSON.stringify(rateLimits.map(toStoredLimit));
      const statement = (sql: Sql) => sql`
        INSERT INTO actors (actor_id, rate_limits, create_time, update_time)
        VALUES (${actorId}, ${limits}::text::jsonb, ${time}::timestamptz, ${time}::timestamptz)
        ON CONFLICT (actor_id) DO UPDATE SET rate_limits = excluded.rate_limits, update_time = excluded.update_time
        RETURNING ${columns(sql)}`;
      return actorOf(await change("put", actorId, principal, statement));
    },
    delete: async (actorId, principal) => {
      const statement = (sql: Sql) => sql`DELETE FROM actors WHERE actor_id = ${actorId} RETURNING ${columns(sql)}`;
      return (await change("delete", actorId, principal, statement)).actorId !== null;
    },
  };
}

function columns(sql: Sql): Fragment {
  return sql`actor_id, rate_limits, create_time, update_time`;
}

function actorOf({ actorId, rateLimits, createTime, updateTime }: ActorRow): Actor {
  return { actorId, rateLimits: rateLimits?.map(fromStoredLimit) ?? null, createTime, updateTime };
}

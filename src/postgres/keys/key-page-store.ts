import type { Fragment, Sql } from "postgres";
import type { Principal } from "../../domain/principal.ts";
import type { KeyPageStore } from "../../keys/key-page.ts";
import { callContext } from "../connection/call-context.ts";
import type { Database } from "../connection/pool.ts";
import { type WithServer, withServer } from "../connection/server-position.ts";

/** Expired sessions that each new one removes. */
const REMOVALS = 10;

/** Creates the store of sessions of the key page in PostgreSQL. Triggers write the events of their changes (migration 0041). */
export function createKeyPageStore(database: Database): KeyPageStore {
  /** Runs a statement that returns `session_id`, after queries written as in `WITH`. Returns whether it has changed a row. */
  const change = async (
    name: string,
    principal: Principal,
    statement: (sql: Sql) => Fragment,
    before?: (sql: Sql) => Fragment,
  ) => {
    const run = (sql: Sql) => sql<WithServer<{ sessionId: string | null }>[]>`
      ${withServer<Fragment>(sql, statement(sql), before?.(sql) ?? sql``, callContext(principal))}`;
    const [row] = await database.run(run, `key_page_sessions.${name}`);
    return row !== undefined && row.sessionId !== null;
  };
  // Two calls must not wait for each other.
  const removeExpired = (sql: Sql) => sql`
    expired AS (
      SELECT session_id FROM key_page_sessions WHERE expire_time < now() - interval '1 hour' ORDER BY expire_time LIMIT ${REMOVALS}
      FOR UPDATE SKIP LOCKED),
    removed AS (DELETE FROM key_page_sessions WHERE session_id IN (SELECT session_id FROM expired)),`;
  return {
    add: async ({ sessionId, grant, expireTime }, principal) => {
      const { actorId, permissions, allowedScopes, maxTtl, returnUrl } = grant;
      const insert = (sql: Sql) => sql`
        INSERT INTO key_page_sessions (session_id, actor_id, permissions, allowed_scopes, max_ttl, return_url, expire_time)
        VALUES (${sessionId}::uuid, ${actorId}::text, ${[...permissions]}::text[], ${[...allowedScopes]}::text[],
          ${maxTtl}::float8 * interval '1 ms', ${returnUrl}::text, ${expireTime}::timestamptz)
        RETURNING session_id`;
      await change("add", principal, insert, removeExpired);
    },
    open: (sessionId, principal) =>
      change(
        "open",
        principal,
        (sql) => sql`
          UPDATE key_page_sessions SET open_time = now() WHERE session_id = ${sessionId}::uuid AND open_time IS NULL
          RETURNING session_id`,
      ),
  };
}

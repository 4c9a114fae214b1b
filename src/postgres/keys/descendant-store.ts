import type { Fragment, Sql } from "postgres";
import type { Principal } from "../../domain/principal.ts";
import { manageableScopes } from "../../keys/authorization.ts";
import type { DescendantStore } from "../../keys/ports.ts";
import type { ChangeCommitter } from "../cluster/change-committer.ts";
import { firstRow } from "../connection/first-row.ts";
import { allOf } from "../connection/fragments.ts";
import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";
import { isVisible } from "./authorization.ts";
import { changeable, changeKeys, commitMany, selectChanged } from "./change-many.ts";

/** Searches downward from a key, by the indexes of migrations 0015 and 0022. */
export function createDescendantStore(reads: Database, changes: ChangeCommitter): DescendantStore {
  return {
    find: (keyId, { change, principal, now }, limit) =>
      reads.run(async (sql) => {
        const rows = await sql<{ keyId: string }[]>`
          SELECT key_id FROM ${descendantsOf(sql, keyId, mayChangeAny(principal) ? limit : null)}
          WHERE ${allOf(sql, [ownSession(sql), ...changeable(sql, change, principal, now)])} LIMIT ${limit}`;
        return rows.map(({ keyId }) => keyId);
      }, "keys.find_descendants"),
    change: async (many) => {
      const { change, principal, now } = many;
      const { changed } = await commitMany(
        changes,
        many,
        `keys.${change.verb}_descendants`,
        (sql) => sql`WITH ${changeKeys(sql, many, changeable(sql, change, principal, now))} ${selectChanged(sql)}`,
      );
      return changed;
    },
    count: (keyId, { restrictions }) =>
      reads.run(async (sql) => {
        const rows = await sql<{ count: number }[]>`
          SELECT count(*)::integer AS count FROM ${descendantsOf(sql, keyId, null)}
          WHERE ${ownSession(sql)} AND ${isVisible(sql, restrictions)}`;
        return firstRow(rows).count;
      }, "keys.count_descendants"),
  };
}

/** The rows of descendants that are not revoked, at most `max`. */
function descendantsOf(sql: Sql, keyId: string, max: number | null): Fragment {
  return sql`descendants_of(${keyId}, ${max}) AS key_id JOIN api_keys USING (key_id)`;
}

/** Whether the search may end before the rights of the principal over each key are tested. */
function mayChangeAny(principal: Principal): boolean {
  return manageableScopes(principal) === "all" && principal.restrictions.actorIds === null;
}

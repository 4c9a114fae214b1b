import type { StoreLastUsed } from "../verify/last-used.ts";
import type { Database } from "./pool.ts";

/** Returns a function that advances `last_used_time`; it never moves it back. */
export function createLastUsedStore(database: Database): StoreLastUsed {
  return async (keyIds, minute) => {
    await database.run(
      (sql) => sql`
        UPDATE api_keys SET last_used_time = ${minute}
        WHERE key_id = ANY (${[...keyIds]}::uuid[]) AND (last_used_time IS NULL OR last_used_time < ${minute})`,
    );
  };
}

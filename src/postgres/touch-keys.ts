import type { Sql } from "postgres";
import type { TouchKeys } from "../verify/last-used.ts";
import { query } from "./errors.ts";

/** Writes `last_used_time`, forward only. */
export function createTouchKeys(sql: Sql): TouchKeys {
  return async (keyIds, minute) => {
    await query(
      () => sql`
        UPDATE api_keys SET last_used_time = ${minute}
        WHERE key_id = ANY (${[...keyIds]}::uuid[]) AND (last_used_time IS NULL OR last_used_time < ${minute})`,
    );
  };
}

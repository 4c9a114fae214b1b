import type { Fragment, ISql } from "postgres";

/** The content of the row `k` of a key as text, without the time of its last use, which is stored after the call. */
export const contentOfKey = (sql: ISql) => sql`(to_jsonb(k) - 'last_used_time' - 'secret_uses')::text`;

/** Returns the number of the stored keys and a hash of their content; by default of all. */
export async function storedKeys(sql: ISql, condition: Fragment = sql`true`): Promise<unknown> {
  const content = sql`md5(string_agg(${contentOfKey(sql)}, '' ORDER BY key_id)) AS content`;
  const [stored] = await sql`SELECT count(*), ${content} FROM api_keys AS k WHERE ${condition}`;
  return stored;
}

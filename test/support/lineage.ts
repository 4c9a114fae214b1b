import type { ISql } from "postgres";

/** The number of the parent of descendant `i`, from 1; 0 is the root. */
export const SHAPES = { chain: "i - 1", star: "0", tree: "i / 3" } as const;

export type Shape = keyof typeof SHAPES;

/** Rows per statement. */
const CHUNK = 10_000;

/**
 * Stores descendants of a key, as admin tokens that were created one by the other. Returns the id of the last. Their ids are lower than those
 * of keys that the service creates.
 */
export async function addDescendants(sql: ISql, root: string, count: number, shape: Shape = "chain"): Promise<string> {
  const newId = (number: string) => `overlay(md5($1::text || '/' || ${number}) PLACING '0000' FROM 1)::uuid`;
  const idOf = (number: string) => `CASE ${number} WHEN 0 THEN $1 ELSE ${newId(number)}::text END`;
  for (let start = 1; start <= count; start += CHUNK) {
    await sql.unsafe(
      `INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id, created_by)
       SELECT ${newId("i")}, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id,
         'admin-token:' || ${idOf(`(${SHAPES[shape]})`)}
       FROM api_keys CROSS JOIN generate_series($2::integer, $3::integer) AS i WHERE key_id = $1::text::uuid`,
      [root, start, Math.min(start + CHUNK - 1, count)],
    );
  }
  const [last] = await sql.unsafe(`SELECT ${newId("$2::integer")} AS id`, [root, count]);
  return last?.id;
}

/** Returns the number of descendants that are not revoked. */
export async function countDescendants(sql: ISql, root: string): Promise<number> {
  const [row] = await sql`SELECT count(*)::integer AS count FROM descendants_of(${root}, NULL)`;
  return row?.count;
}

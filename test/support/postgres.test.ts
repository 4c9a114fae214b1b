import postgres from "postgres";
import { expect, test } from "vitest";
import { createEmptyDatabase } from "./postgres.ts";

test("each suite gets an empty database as its owner, not as a superuser", async () => {
  const [one, other] = await Promise.all([createEmptyDatabase(), createEmptyDatabase()]);
  const sql = postgres(one.ownerUrl, { max: 1, onnotice: () => {} });
  await sql`CREATE TABLE mine (id int)`;
  const [who] = await sql`SELECT rolsuper FROM pg_roles WHERE rolname = current_user`;
  expect(who).toEqual({ rolsuper: false });
  const stranger = postgres(other.ownerUrl, { max: 1 });
  expect(await stranger`SELECT to_regclass('mine') AS mine`).toEqual([{ mine: null }]);
  await stranger.end();
  await Promise.all([one.drop(), other.drop()]);
  await expect(sql`SELECT 1`).rejects.toThrow();
  await sql.end();
});

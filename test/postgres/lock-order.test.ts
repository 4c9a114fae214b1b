import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { propagating } from "../../src/postgres/cluster/change-committer.ts";
import { createKeyStore } from "../../src/postgres/key-store.ts";
import { createLastUsedStore } from "../../src/postgres/keys/verification-store.ts";
import { isAwaited } from "../support/locked-row.ts";
import { noNodes } from "../support/no-cluster.ts";
import { useOf } from "../support/uses.ts";
import { newKey, openSchema } from "./new-keys.ts";

test("recorded uses lock keys in the order of their ids, as bulk changes do, in whatever order they are stored", async () => {
  const { url, ownerUrl, pool } = await openSchema();
  const [sql, owner] = [postgres(url, { max: 2 }), postgres(ownerUrl, { max: 1 })];
  onTestFinished(async () => void (await Promise.all([sql.end(), owner.end()])));
  // The plan for many keys, which reads them in the order in which they are stored.
  await owner.unsafe(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET enable_indexscan = off`);
  const store = createKeyStore({ reads: pool, lists: pool }, propagating(pool, noNodes));
  const [first, second] = [newKey(), newKey()];
  for (const key of [second, first]) await store.insert([key]);
  const keyIds = [first.key.keyId, second.key.keyId];
  const now = new Date();
  let recorded: Promise<void> | undefined;
  await sql.begin(async (tx) => {
    const [lowest = "", highest = ""] = keyIds;
    await tx`SELECT FROM api_keys WHERE key_id = ${lowest} FOR NO KEY UPDATE`;
    recorded = createLastUsedStore(pool)(
      keyIds.map((keyId) => useOf(keyId)),
      now,
    );
    while (!(await isAwaited(sql))) await sleep(5);
    await tx`SELECT FROM api_keys WHERE key_id = ${highest} FOR NO KEY UPDATE`;
  });
  await recorded;
  expect(await sql`SELECT last_used_time FROM api_keys`).toEqual([{ last_used_time: now }, { last_used_time: now }]);
});

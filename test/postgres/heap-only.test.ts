import { expect, test } from "vitest";
import { propagating } from "../../src/postgres/cluster/change-committer.ts";
import { createKeyStore } from "../../src/postgres/key-store.ts";
import { noNodes } from "../support/no-cluster.ts";
import { operator } from "../support/principal.ts";
import { newKey, openSchema } from "./new-keys.ts";

const NOW = new Date();

test("disabling and enabling a key changes no index (PostgreSQL docs, 66.7)", async () => {
  const { pool } = await openSchema();
  const store = createKeyStore({ reads: pool, lists: pool }, propagating(pool, noNodes));
  const added = newKey({ kind: "issued" });
  await store.insert([added]);
  const toggles = [{ verb: "disable", reason: "r" }, { verb: "enable" }, { verb: "disable", reason: null }] as const;
  // The counters of a transaction are exact.
  await pool.run((sql) => sql.unsafe("BEGIN"));
  for (const toggle of toggles) await store.change({ keyId: added.key.keyId, kind: null }, toggle, operator, NOW);
  const rows = await pool.run(
    (sql) => sql`
      SELECT pg_stat_get_xact_tuples_updated(oid)::int AS updated, pg_stat_get_xact_tuples_hot_updated(oid)::int AS heap_only
      FROM pg_class WHERE oid = 'api_keys'::regclass`,
  );
  await pool.run((sql) => sql.unsafe("COMMIT"));
  expect(rows).toMatchObject([{ updated: 3, heapOnly: 3 }]);
});

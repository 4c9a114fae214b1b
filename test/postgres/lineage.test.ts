import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { migrate, readMigrations } from "../../src/postgres/migrations/migrate.ts";
import { connect } from "../support/driver-client.ts";
import { addDescendants, countDescendants } from "../support/lineage.ts";
import { isAwaited } from "../support/locked-row.ts";
import { createEmptyDatabase } from "../support/postgres.ts";
import { newKey } from "./new-keys.ts";

/** The migration that stores the lineage of keys. */
const LINEAGE = "lineage";

test("the lineage of keys of the previous release is known, also of those whose insertion is in flight", async () => {
  const database = await createEmptyDatabase();
  const [sql, server] = [1, 2].map(() => connect({ url: database.ownerUrl, statementTimeout: 0, prepare: false }));
  if (sql === undefined || server === undefined) throw new Error("no connections");
  onTestFinished(async () => {
    await Promise.all([sql.end({ timeout: 0 }), server.end({ timeout: 0 })]);
    await database.drop();
  });
  const migrations = await readMigrations();
  const { version = 0 } = migrations.find(({ name }) => name === LINEAGE) ?? {};
  await migrate(
    sql,
    migrations.filter((one) => one.version < version),
  );
  const { keyId: root } = newKey().key;
  await sql`
    INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id)
    VALUES (${root}, 'issued', 'n', 'a', '{}', '{}', '', now(), now(), '', 'k')`;
  const last = await addDescendants(sql, root, 5);
  // A chain is followed through revoked tokens, also if all that they have created is revoked.
  await server`
    UPDATE api_keys SET revoke_time = now(), revocation_reason = 'r' WHERE key_id NOT IN (${root}, ${last})`;
  let migrated: Promise<string[]> | undefined;
  await server.begin(async (tx) => {
    await addDescendants(tx, last, 1);
    migrated = migrate(sql, migrations);
    while (!(await isAwaited(tx))) await nextTurn();
  });
  await migrated;
  expect(await countDescendants(sql, root)).toBe(2);
});

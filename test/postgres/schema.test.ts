import type { Sql } from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { serverRole } from "../../src/embedded-postgres/cluster.ts";
import { readRights } from "../../src/postgres/migrations/rights.ts";
import { bringUpToDate, openSchema, prepareOwned } from "../../src/postgres/migrations/schema.ts";
import { start, usedDataDir } from "../embedded-postgres/support.ts";
import { connect } from "../support/driver-client.ts";
import { runKeyhold } from "../support/keyhold.ts";
import { createEmptyDatabase, createTestDatabase, type TestDatabase, userOf } from "../support/postgres.ts";
import { startTestServer } from "../support/server.ts";

async function fresh(make: () => Promise<TestDatabase>): Promise<TestDatabase> {
  const database = await make();
  onTestFinished(() => database.drop());
  return database;
}

function connectTo(url: string): Sql {
  const sql = connect({ url, statementTimeout: 0, prepare: false });
  onTestFinished(() => sql.end({ timeout: 0 }));
  return sql;
}

test("a server's role creates no schema, and the error names the role that must", async () => {
  const { url, ownerUrl } = await fresh(createEmptyDatabase);
  await expect(openSchema(url)).rejects.toMatchObject({
    code: "DATABASE_UNAVAILABLE",
    message: expect.stringMatching(
      /lacks 0001_keys, .*and role \w+_server cannot migrate it: set KEYHOLD_DATABASE_MIGRATE_URL /,
    ),
  });
  expect(await connectTo(ownerUrl)`SELECT FROM pg_tables WHERE schemaname = 'public'`).toEqual([]);
});

test("a server's role refuses to start on an outdated schema, and starts when the owner has migrated", async () => {
  const { url, ownerUrl } = await fresh(createTestDatabase);
  const owner = connectTo(ownerUrl);
  await owner`DROP TABLE used_root_secrets; `.simple();
  await owner`DELETE FROM schema_migrations WHERE version = 5`;
  await expect(openSchema(url)).rejects.toThrow(/^the database lacks 0005_used_root_secrets, and role/);
  expect(await bringUpToDate(ownerUrl, userOf(url))).toEqual(["0005_used_root_secrets"]);
  expect(await openSchema(url)).toEqual([]);
});

test("the root secrets of keys from before their registration count as used", async () => {
  const { url, ownerUrl } = await fresh(createTestDatabase);
  const owner = connectTo(ownerUrl);
  await owner`DROP TABLE used_root_secrets; `.simple();
  await owner`DELETE FROM schema_migrations WHERE version = 5`;
  const previous = [{ version: 1, digest: "00", digest_key_id: "older", expire_time: "2020-01-01T00:00:00Z" }];
  await owner`INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest,
      digest_key_id, previous_secrets)
    VALUES (gen_random_uuid(), 'issued', 'n', 'a', '{}', '{}', '', now(), now(), '', 'old', ${owner.json(previous)})`;
  await bringUpToDate(ownerUrl, userOf(url));
  const found = await connectTo(url)`SELECT digest_key_id FROM used_root_secrets ORDER BY digest_key_id`;
  expect(found.map(({ digestKeyId }) => digestKeyId)).toEqual(["old", "older"]);
});

test("a schema of a later version is unchanged", async () => {
  const { url, ownerUrl } = await fresh(createTestDatabase);
  await connectTo(ownerUrl)`INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, 'later', '')`;
  expect([await openSchema(url), await openSchema(ownerUrl)]).toEqual([[], []]);
});

test("rights of an earlier release stay, for its servers that still run", async () => {
  const { url, ownerUrl } = await fresh(createTestDatabase);
  await connectTo(ownerUrl).unsafe(`GRANT UPDATE ON accepted_databases TO ${userOf(url)}`);
  await bringUpToDate(ownerUrl, userOf(url));
  expect(await readRights(connectTo(url))).toMatchObject({ missing: [], needless: ["UPDATE on accepted_databases"] });
});

test("keyhold migrate creates the schema as its owner and grants the servers' role its rights", async () => {
  const { url, ownerUrl } = await fresh(createEmptyDatabase);
  await connectTo(ownerUrl)`REVOKE CONNECT ON DATABASE ${connectTo(ownerUrl)(userOf(ownerUrl))} FROM PUBLIC`;
  const environment = { KEYHOLD_DATABASE_URL: url };
  expect(await runKeyhold(["migrate"], environment)).toMatchObject({
    code: 6,
    stderr: expect.stringContaining("KEYHOLD_DATABASE_MIGRATE_URL"),
  });
  const asOwner = { ...environment, KEYHOLD_DATABASE_MIGRATE_URL: ownerUrl };
  expect(await runKeyhold(["migrate"], asOwner)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Applied 0001_keys, .*\.\n$/),
  });
  expect(await runKeyhold(["migrate"], asOwner)).toMatchObject({ code: 0, stdout: "The schema is up to date.\n" });
  const server = await startTestServer({ KEYHOLD_DATABASE_URL: url });
  expect((await fetch(`${server.url}/health/ready`)).status).toBe(200);
  await server.close();
});

test("keyhold migrate --grant-to names the role, which must exist", async () => {
  const { url, ownerUrl } = await fresh(createEmptyDatabase);
  const environment = { KEYHOLD_DATABASE_URL: ownerUrl };
  const unknown = await runKeyhold(["migrate", "--grant-to", "nobody's"], environment);
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("role nobody's does not exist")]);
  expect(await runKeyhold(["migrate", "--grant-to", userOf(url)], environment)).toMatchObject({ code: 0 });
  expect(await openSchema(url)).toEqual([]);
});

test("an embedded database of an earlier release without a servers' role gets one", async () => {
  const server = await start(await usedDataDir());
  const superuser = connectTo(server.superuserUrl);
  await prepareOwned(server);
  await superuser.unsafe(`DROP OWNED BY ${serverRole}; DROP ROLE ${serverRole}`);
  await Promise.all([prepareOwned(server), prepareOwned(server)]);
  const { role, ...rights } = await readRights(connectTo(server.serverUrl));
  expect([role, rights]).toEqual([
    serverRole,
    { isSuperuser: false, isOwner: false, mayCreate: false, missing: [], needless: [] },
  ]);
  await superuser.unsafe(
    "DROP TABLE api_keys, actors, hash_schemes, hmac_keys, hash_prefix_lengths, signing_keys, nodes, used_root_secrets, accepted_databases, schema_migrations CASCADE",
  );
  await superuser.unsafe(
    "DROP FUNCTION notify_key_changed, notify_raw_keys_imported, notify_key_adopted, notify_change",
  );
});

import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import postgres, { type Sql } from "postgres";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { processUser } from "../../src/lib/node-name.ts";
import { readMigrations } from "../../src/postgres/migrations/migrate.ts";
import { replayAuditLog, type StoredEvent } from "../support/audit-replay.ts";
import { succeeded } from "../support/conformance.ts";
import { runKeyhold, serve } from "../support/keyhold.ts";
import { createEmptyDatabase, type TestDatabase, userOf } from "../support/postgres.ts";
import { paths, restClient } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";

/** Each change that a command makes has one event. The tests run in order. */

let database: TestDatabase;
let sql: Sql;
let environment: Record<string, string>;
/** The number of events that were expected so far. */
let known = 0;

beforeAll(async () => {
  database = await createEmptyDatabase();
  sql = postgres(database.ownerUrl, { max: 2, onnotice: () => {} });
  const path = join(await mkdtemp(join(inject("testDir"), "audited-")), "root-secret");
  await writeFile(path, `${ROOT_SECRET}\n`, { mode: 0o640 });
  environment = { KEYHOLD_DATABASE_URL: database.url, KEYHOLD_ROOT_SECRET_FILE: path, KEYHOLD_LEASE_TTL: "15s" };
});
afterAll(async () => {
  await sql.end();
  await database.drop();
});

/** Runs a command that must succeed, and returns its output. */
async function keyhold(args: string, more: Record<string, string> = {}): Promise<string> {
  const { code, stdout, stderr } = await runKeyhold(args.split(" "), { ...environment, ...more });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

/** Returns the events since the last call. */
async function newEvents(): Promise<readonly StoredEvent[]> {
  const { events, violations } = await replayAuditLog(sql);
  expect(violations).toEqual([]);
  const added = events.slice(known);
  known = events.length;
  return added;
}

const OPERATOR = { caller: `local:${processUser()}`, method: "local", node: expect.stringMatching(/:\d+$/) };

/** Expects the events since the last call, all of the operator. */
async function expectEvents(...expected: readonly (Partial<StoredEvent> & { readonly action: string })[]) {
  const events = await newEvents();
  expect(events).toMatchObject(expected.map((event) => ({ ...event, call: OPERATOR })));
  return events;
}

/** The migration that creates the log. */
const FIRST_RECORDED = 26;

test("migrate", async () => {
  await keyhold("migrate", { KEYHOLD_DATABASE_MIGRATE_URL: database.ownerUrl });
  const recorded = (await readMigrations()).filter(({ version }) => version >= FIRST_RECORDED);
  await expectEvents(...recorded.map(({ name }) => ({ action: "migration.created", resourceId: name })));
});

test("admin token create and renew", async () => {
  const { secret, issued_api_key } = JSON.parse(await keyhold("admin token create --name a --json"));
  const keyId: string = issued_api_key.key_id;
  const [issued] = await expectEvents({ action: "key.issued", keyId });
  expect(JSON.stringify(issued)).not.toContain(secret);
  await keyhold(`admin token renew ${keyId} --ttl 1d`);
  const [renewed] = await expectEvents({ action: "key.updated", keyId });
  expect(Object.keys(renewed?.after ?? {})).toEqual(["expire_time", "update_time"]);
});

test("signing-keys rotate and revoke", async () => {
  const kids: string[] = [];
  for (let turn = 0; turn < 2; turn++) kids.push((await keyhold("signing-keys rotate")).trim());
  const [first = "", second = ""] = kids;
  await expectEvents(
    { action: "signing_key.created", resourceId: first },
    { action: "signing_key.rotated", resourceId: first, before: { retire_time: null } },
    { action: "signing_key.created", resourceId: second },
  );
  const { active } = JSON.parse(await keyhold(`signing-keys revoke ${second} --json`));
  await expectEvents(
    { action: "signing_key.deleted", resourceId: second, after: null },
    { action: "signing_key.created", resourceId: active },
  );
});

test("cluster accept-database", async () => {
  await keyhold("cluster accept-database");
  await expectEvents({ action: "accepted_database.created" });
});

test("serve, with a root secret for the first time", async () => {
  const server = await serve({ ...environment, KEYHOLD_EXPIRY_WARNINGS: "off" });
  const body = { hmac_key_id: "h", key: "the key of another system's HMACs", encoding: "TEXT_ENCODING_UTF8" };
  succeeded(await restClient(server)("POST", paths.hmacKeys, body));
  const endpoint = { endpoint_id: "w", url: "https://hooks.invalid", event_types: ["key.revoked"] };
  succeeded(await restClient(server)("POST", paths.webhookEndpoints, endpoint));
  server.kill("SIGTERM");
  await server.ended;
  expect(await newEvents()).toMatchObject([
    { action: "root_secret.created", call: OPERATOR },
    { action: "audit_tree_key.created", resourceId: expect.stringMatching(/^keyhold\//), call: OPERATOR },
    { action: "hmac_key.created", call: { caller: "none:anonymous" } },
    { action: "webhook_endpoint.created", resourceId: "w", call: { caller: "none:anonymous" } },
  ]);
});

const REWRAPPED = [
  "signing_key.rewrapped",
  "signing_key.rewrapped",
  "audit_tree_key.rewrapped",
  "hmac_key.rewrapped",
  "webhook_endpoint.rewrapped",
] as const;

test("secrets rotate and promote", async () => {
  await keyhold("secrets rotate");
  await expectEvents(...REWRAPPED.map((action) => ({ action })));
  const staged = /promote ([0-9a-f]+)/.exec(await keyhold("secrets rotate --stage"))?.[1];
  await expectEvents();
  await keyhold(`secrets promote ${staged}`);
  await expectEvents(...REWRAPPED.map((action) => ({ action })));
});

test("truncations in SQL have the role of the session", async () => {
  await sql`
    TRUNCATE api_keys, signing_keys, hmac_keys, used_root_secrets, accepted_databases, schema_migrations, audit_tree_key,
      webhook_endpoints CASCADE`;
  const call = { caller: `database:${userOf(database.ownerUrl)}`, method: "database" };
  const truncated = [
    "accepted_databases",
    "audit_tree_keys",
    "hmac_keys",
    "keys",
    "migrations",
    "root_secrets",
    "signing_keys",
    "webhook_endpoints",
  ];
  const events = (await newEvents()).toSorted((a, b) => (a.action < b.action ? -1 : 1));
  expect(events).toMatchObject(truncated.map((name) => ({ action: `${name}.truncated`, call })));
});

import { randomUUID } from "node:crypto";
import postgres, { type Sql } from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { FeedSession } from "../../src/cluster/change-feed.ts";
import type { NewKeyPageSession } from "../../src/keys/key-page.ts";
import type { BulkOperation, BulkSelection, NewBulkOperation } from "../../src/keys/ports.ts";
import { recordExpiry } from "../../src/postgres/audit/expiry.ts";
import { acceptDatabase } from "../../src/postgres/cluster/accepted-databases.ts";
import { createOpenFeed } from "../../src/postgres/cluster/change-feed.ts";
import { createRenewLease } from "../../src/postgres/cluster/leases.ts";
import { listNodes } from "../../src/postgres/cluster/nodes.ts";
import { createKeyPageStore } from "../../src/postgres/keys/key-page-store.ts";
import { createFindKeys, createLastUsedStore } from "../../src/postgres/keys/verification-store.ts";
import { FUNCTIONS, RIGHTS, readRights } from "../../src/postgres/migrations/rights.ts";
import { listUsedRootSecrets, recordRootSecretUse } from "../../src/postgres/signing/root-secret-use.ts";
import { toConfig } from "../../src/server/config/config.ts";
import { openResources, type Resources } from "../../src/server/resources.ts";
import { createSigning, rotateSigningKey } from "../../src/signing/signing.ts";
import { DAY, HOUR, type UsageQuery } from "../../src/usage/query.ts";
import type { AttemptResult } from "../../src/webhooks/store.ts";
import { table } from "../support/conformance.ts";
import { anyServer } from "../support/no-cluster.ts";
import { createTestDatabase, type TestDatabase, userOf } from "../support/postgres.ts";
import { operator } from "../support/principal.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { useOf } from "../support/uses.ts";
import { newKey } from "./new-keys.ts";

let database: TestDatabase;
let server: Sql;
let owner: Sql;
let role: string;
let resources: Resources;

beforeAll(async () => {
  database = await createTestDatabase();
  role = userOf(database.url);
  const options = { max: 1, onnotice: () => {} };
  [server, owner] = [postgres(database.url, options), postgres(database.ownerUrl, options)];
  resources = await open();
});

afterAll(async () => {
  await resources.close();
  await Promise.all([server.end(), owner.end()]);
  await database.drop();
});

function open(): Promise<Resources> {
  const environment = { KEYHOLD_DATABASE_URL: database.url, KEYHOLD_ROOT_SECRET: ROOT_SECRET };
  return openResources(toConfig(environment), { log: () => {} });
}

/** Statements that change the schema or privileges, or truncate tables. */
const FORBIDDEN = table([
  "CREATE TABLE mine (id int)",
  "CREATE SCHEMA mine",
  "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
  "CREATE INDEX mine ON api_keys (name)",
  "CREATE VIEW mine AS SELECT 1",
  "CREATE TRIGGER mine AFTER INSERT ON api_keys EXECUTE FUNCTION tell('mine')",
  "CREATE OR REPLACE FUNCTION notify_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
  "CREATE ROLE mine",
  "CREATE EXTENSION hstore",
  "ALTER TABLE api_keys ADD mine int",
  "ALTER TABLE api_keys RENAME TO mine",
  "ALTER TABLE api_keys OWNER TO CURRENT_USER",
  "ALTER TABLE api_keys DISABLE TRIGGER key_changed",
  "ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY",
  "ALTER FUNCTION notify_change() OWNER TO CURRENT_USER",
  "ALTER SCHEMA public RENAME TO mine",
  "ALTER ROLE CURRENT_USER SUPERUSER",
  "ALTER ROLE CURRENT_USER CREATEROLE",
  "COMMENT ON TABLE api_keys IS 'mine'",
  "DROP TABLE signing_keys",
  "DROP INDEX api_keys_newest",
  "DROP TRIGGER key_changed ON api_keys",
  "DROP FUNCTION notify_change() CASCADE",
  "DROP SCHEMA public CASCADE",
  "TRUNCATE api_keys",
  "TRUNCATE nodes",
  "GRANT CREATE ON SCHEMA public TO CURRENT_USER",
  "GRANT TRUNCATE ON api_keys TO CURRENT_USER",
  "SET session_replication_role = replica",
  "INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, 'mine', '')",
  "UPDATE schema_migrations SET checksum = ''",
  "DELETE FROM schema_migrations",
  "TRUNCATE signing_keys",
  "INSERT INTO raw_key_digests (digest, key_id) VALUES ('', gen_random_uuid())",
  "DELETE FROM raw_key_digests",
  "TRUNCATE raw_key_digests",
  "COPY api_keys TO PROGRAM 'true'",
  "INSERT INTO audit_pending (action, call) VALUES ('mine', '{}')",
  "UPDATE audit_pending SET call = '{}'",
  "DELETE FROM audit_pending",
  "TRUNCATE audit_pending",
  "INSERT INTO audit_events (seq, time, action, caller, call) VALUES (-1, now(), 'mine', 'me', '{}')",
  "UPDATE audit_events SET caller = 'me'",
  "DELETE FROM audit_events",
  "TRUNCATE audit_events",
  "INSERT INTO audit_log VALUES (0)",
  "UPDATE audit_log SET size = 0",
  "DELETE FROM audit_log",
  "TRUNCATE audit_log",
  "SELECT size FROM audit_log FOR UPDATE",
  "SELECT audit_prune(now())",
  "ALTER TABLE api_keys DISABLE TRIGGER keys_updated_audited",
  "SELECT audit_erase('actor', 'mine')",
  "INSERT INTO audit_tiles VALUES (0, 0, '')",
  "UPDATE audit_tiles SET hashes = ''",
  "DELETE FROM audit_tiles",
  "TRUNCATE audit_tiles",
  "UPDATE audit_tree SET size = 0",
  "DELETE FROM audit_tree",
  "DELETE FROM audit_tree_key",
  "ALTER TABLE api_keys DISABLE TRIGGER ALL",
  "ALTER TABLE audit_events OWNER TO CURRENT_USER",
  "DROP TRIGGER keys_created_audited ON api_keys",
  "DROP FUNCTION audit_row_changed() CASCADE",
  "CREATE OR REPLACE FUNCTION audit_call() RETURNS jsonb LANGUAGE sql AS 'SELECT ''{}''::jsonb'",
  "CREATE OR REPLACE FUNCTION audit_keys_updated() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
  "CREATE OR REPLACE FUNCTION audit_sequence(max_events integer, OUT assigned integer, OUT lag integer) LANGUAGE sql AS 'SELECT 0, 0'",
  "ALTER FUNCTION audit_keys_updated() SET search_path = pg_temp",
  "ALTER ROLE CURRENT_USER SET session_replication_role = replica",
  "INSERT INTO key_usage SELECT gen_random_uuid(), 1, current_date, 'VALID', '{1}'",
  "UPDATE key_usage SET count = 0",
  "DELETE FROM key_usage",
  "DELETE FROM packed_usage",
  "DELETE FROM packed_usage_hours",
  "DELETE FROM top_usage",
  "UPDATE usage_log SET first_day = current_date",
  "DELETE FROM usage_flushes",
  "SELECT usage_drop('key_usage', current_date)",
  "SELECT usage_live_partition(current_date)",
]);

test.each(FORBIDDEN)("a server may not: %s", async (statement) => {
  // PostgreSQL answers a GRANT without grant option with a warning, not an error, so the privileges are compared.
  const refusal = await server.unsafe(statement).catch((error) => error.code);
  if (!statement.startsWith("GRANT")) expect(refusal).toMatch(/^(42501|0LP01|42939)$/);
  expect(await readRights(server)).toEqual({
    role,
    isSuperuser: false,
    isOwner: false,
    mayCreate: false,
    missing: [],
    needless: [],
  });
});

test("a temporary table receives no events", async () => {
  await server`CREATE TEMP TABLE audit_pending (action text, resource_id text, call jsonb, before jsonb, after jsonb)`;
  await server`GRANT INSERT ON pg_temp.audit_pending TO PUBLIC`;
  await server`INSERT INTO used_root_secrets (digest_key_id) VALUES ('mine')`;
  await server`DROP TABLE pg_temp.audit_pending`;
  expect(await owner`SELECT action FROM audit_pending WHERE resource_id = 'mine'`).toEqual([
    { action: "root_secret.created" },
  ]);
});

const NOW = new Date();
const KEY_ID = newKey().key.keyId;

/** A notification connection for a single action. */
async function feed(work: (session: FeedSession) => Promise<unknown>): Promise<void> {
  const session = await createOpenFeed(database.url)({ onEvent: () => {}, onLost: () => {} }, 5_000);
  await work(session).finally(() => session.end());
}

const SELECTION: BulkSelection = {
  filter: { node: "uuid", field: "key_id", operator: "=", value: KEY_ID },
  ...{ filterTime: NOW, change: { verb: "disable", reason: null }, principal: operator },
};

const OPERATION: NewBulkOperation = {
  ...{ requestId: "an id", verb: "disable", fingerprint: Buffer.alloc(32), caller: "me" },
  ...{ startTime: NOW, matchedCount: 1, throughKeyId: KEY_ID },
};

const TOKENS = { bucket: "key/1/requests", burst: 10, rate: 0.001, wanted: 1, owed: 0 };

const begun = (operation: NewBulkOperation): BulkOperation => {
  return { ...operation, afterKeyId: "00000000-0000-0000-0000-000000000000", changedCount: 0, done: false };
};

const hashing = () => resources.hashing;
const HMAC_KEY = { hmacKeyId: "k", wrapped: Buffer.alloc(1), wrapKeyId: "k", createTime: NOW, createdBy: "me" };
const SCHEME = { algorithm: "SHA256", prefix: "", suffix: "", hmacKeyId: null } as const;

const endpoints = () => resources.webhooks.endpoints;
const ENDPOINT = {
  ...{ endpointId: "h", url: "", eventTypes: [], filter: "", description: "", createTime: NOW, createdBy: "me" },
  secret: { wrapped: Buffer.alloc(1), wrapKeyId: "k" },
};
const DELIVERY = { deliveryId: randomUUID(), endpointId: "of nothing", seq: null, eventType: "", body: "" };
const ATTEMPT: AttemptResult = {
  ...({ state: "succeeded", delay: null, isGone: false } as const),
  ...{ httpStatus: 204, error: null, durationMs: 1 },
};

const FLUSH = { processId: randomUUID(), id: 1, rows: [] };
const USAGE: UsageQuery = { startTime: new Date(0), endTime: new Date("2100-01-01"), groupBy: [], step: HOUR };
const readUsage = (query: Partial<UsageQuery> = {}) =>
  resources.usage.reader.query({ ...USAGE, ...query }, { offset: 0, limit: 1 }, operator.restrictions);
const readTop = () => readUsage({ endTime: new Date(DAY), groupBy: ["key"], step: null });

/** Removes a scheme and a length that no key has. */
async function removeUnused(): Promise<void> {
  await owner`INSERT INTO hash_schemes (scheme_id, slot, algorithm, create_time) VALUES (1, 8, 'SHA384', '2026-01-01') ON CONFLICT DO NOTHING`;
  await owner`INSERT INTO hash_prefix_lengths (length, slot, create_time) VALUES (64, 4, '2026-01-01') ON CONFLICT DO NOTHING`;
  await hashing().removeUnused();
}

/** For each right, an action of a server that needs it. */
const actors = () => resources.actors.store;

const NEEDED: Readonly<Record<string, () => Promise<unknown>>> = {
  "SELECT on api_keys": () => resources.keys.store.get({ keyId: KEY_ID, kind: null }),
  "INSERT on api_keys": () => resources.keys.store.insert(Array.from({ length: 100 }, () => newKey())),
  "UPDATE on api_keys": () => createLastUsedStore(resources.database)([useOf(KEY_ID, { oldSecret: 1 })], NOW),
  "DELETE on api_keys": () =>
    resources.keys.store.change({ keyId: KEY_ID, kind: null }, { verb: "delete" }, operator, NOW),
  "SELECT on signing_keys": () => resources.signing.store.list(),
  "INSERT on signing_keys": () => createSigning(resources.signing),
  "UPDATE on signing_keys": () => rotateSigningKey(resources.signing),
  "DELETE on signing_keys": () => resources.signing.store.revoke("of no key", null, NOW),
  "SELECT on hmac_keys": () => hashing().hmacKeys.store.list(),
  "INSERT on hmac_keys": () => hashing().hmacKeys.store.add(HMAC_KEY, operator),
  "UPDATE on hmac_keys": () => hashing().rewrap.store.rewrapHmacKey("of no key", HMAC_KEY, "k"),
  "DELETE on hmac_keys": () => hashing().hmacKeys.store.delete("of no key", operator),
  "SELECT on hash_schemes": () => hashing().formats.reload(),
  "INSERT on hash_schemes": () => hashing().formats.schemeId({ ...SCHEME, prefix: randomUUID() }),
  "UPDATE on hash_schemes": () => hashing().rewrap.store.rewrapAffixes(0, HMAC_KEY, "k"),
  "DELETE on hash_schemes": () => removeUnused(),
  "SELECT on hash_prefix_lengths": () => hashing().formats.reload(),
  "INSERT on hash_prefix_lengths": () => hashing().formats.requirePrefixLength(8),
  "DELETE on hash_prefix_lengths": () => removeUnused(),
  "SELECT on nodes": () => listNodes(resources.database),
  "INSERT on nodes": () => feed((session) => session.join({ name: "n", version: "1", ttl: 1_000 }, null, null)),
  "UPDATE on nodes": () =>
    createRenewLease(database.url)(
      { leaseId: KEY_ID, number: 1, feedLag: null, clockAhead: null },
      new AbortController().signal,
    ),
  "DELETE on nodes": () => feed((session) => session.leave()),
  "SELECT on actors": () => actors().find("nobody"),
  "INSERT on actors": () => actors().put("nobody", { rateLimits: null }, NOW, operator),
  "UPDATE on actors": () => actors().put("nobody", { rateLimits: null }, NOW, operator),
  "DELETE on actors": () => actors().delete("nobody", operator),
  "SELECT on limit_buckets": () => resources.buckets.grantTokens([TOKENS]),
  "INSERT on limit_buckets": () => resources.buckets.grantTokens([TOKENS]),
  "UPDATE on limit_buckets": () => resources.buckets.grantTokens([TOKENS]),
  "DELETE on limit_buckets": () => resources.buckets.removeEmpty(),
  "EXECUTE on FUNCTION quota_period_end(timestamptz,text,timestamptz)": () => resources.buckets.grantTokens([TOKENS]),
  "SELECT on bulk_changes": () => resources.keys.bulk.find("an id"),
  "INSERT on bulk_changes": () => resources.keys.bulk.begin(OPERATION),
  "UPDATE on bulk_changes": () =>
    resources.keys.bulk.advance(begun(OPERATION), { ...SELECTION, keyIds: [], requiresCaller: true, now: NOW }, true),
  "DELETE on bulk_changes": () => resources.keys.bulk.begin(OPERATION),
  "SELECT on used_root_secrets": () => listUsedRootSecrets(resources.database),
  "INSERT on used_root_secrets": () => recordRootSecretUse(resources.database, "an id"),
  "SELECT on raw_key_digests": () =>
    createFindKeys(resources.database, anyServer)([{ keyId: null, digests: [Buffer.alloc(32)] }]),
  "SELECT on accepted_databases": () => feed(async () => undefined),
  "INSERT on accepted_databases": () => acceptDatabase(resources.database),
  "SELECT on key_page_sessions": () => keyPages().open(randomUUID(), operator),
  "INSERT on key_page_sessions": () => keyPages().add(keyPageSession(), operator),
  "UPDATE on key_page_sessions": () => keyPages().open(randomUUID(), operator),
  "DELETE on key_page_sessions": () => keyPages().add(keyPageSession(), operator),
  "SELECT on webhook_endpoints": () => endpoints().list(),
  "INSERT on webhook_endpoints": () => endpoints().add(ENDPOINT, operator),
  "UPDATE on webhook_endpoints": () => endpoints().update("h", {}, NOW, operator),
  "DELETE on webhook_endpoints": () => endpoints().delete("of nothing", operator),
  "SELECT on webhook_deliveries": () => endpoints().deliveries("h", null, 1),
  "INSERT on webhook_deliveries": () => endpoints().addDelivery(DELIVERY),
  "UPDATE on webhook_deliveries": () => endpoints().redeliver("h", KEY_ID),
  "DELETE on webhook_deliveries": () => resources.webhooks.queue.deleteOld(),
  "SELECT on webhook_attempts": () => endpoints().deliveries("h", null, 1),
  "INSERT on webhook_attempts": () =>
    resources.webhooks.queue.record({ endpointId: "e", deliveryId: KEY_ID, lease: "now" }, ATTEMPT),
  "SELECT on schema_migrations": async () => (await open()).close(),
  "SELECT on audit_events": () => resources.audit.store.read(0, 1),
  "SELECT on audit_log": () => resources.audit.store.bounds(),
  "SELECT on audit_tiles": () => tree().tile({ level: 0, index: 0 }),
  "SELECT on audit_tree": () => tree().head(),
  "SELECT on audit_tree_key": () => tree().head(),
  "INSERT on audit_tree_key": () => tree().addKey(TREE_KEY),
  "UPDATE on audit_tree_key": () => tree().rewrapKey(TREE_KEY, ""),
  "EXECUTE on FUNCTION audit_grow(bigint,bigint,jsonb,text)": () =>
    tree().grow({ from: 1_000_000, to: 1_000_001, tiles: [], checkpoint: "" }),
  "SELECT on key_usage": () => readUsage(),
  "SELECT on packed_usage": () => readUsage(),
  "SELECT on packed_usage_hours": () => readUsage(),
  "SELECT on top_usage": readTop,
  "SELECT on usage_log": () => readUsage(),
  "EXECUTE on FUNCTION audit_checkpoint()": () => tree().recordCheckpoint(),
  "EXECUTE on FUNCTION audit_deny(jsonb)": () => resources.audit.store.deny([]),
  "EXECUTE on FUNCTION audit_limits(jsonb)": () => resources.audit.store.recordExceeded([]),
  "EXECUTE on FUNCTION usage_flush(uuid,bigint,uuid[],text[],bigint[])": () => resources.usage.store.flush(FLUSH),
  "EXECUTE on FUNCTION usage_maintain(interval,integer)": () => resources.usage.store.maintain(7_776_000_000),
  "EXECUTE on FUNCTION audit_expiry(interval[],integer)": () => recordExpiry(resources.database, []),
  "EXECUTE on FUNCTION audit_sequence(integer)": () => resources.audit.store.sequence(),
};

const tree = () => resources.auditTree.store;

const keyPages = () => createKeyPageStore(resources.database);

const keyPageSession = (): NewKeyPageSession => ({
  ...{ sessionId: randomUUID(), expireTime: new Date() },
  grant: { actorId: "a", permissions: [], allowedScopes: [], maxTtl: null, returnUrl: null },
});

const TREE_KEY = { verifierKey: "a log+00000000+AA", wrapped: Buffer.alloc(1), wrapKeyId: "a server key" };

test("a server has only the rights that it needs", () => {
  const granted = Object.entries(RIGHTS).flatMap(([name, rights]) => rights.map((right) => `${right} on ${name}`));
  const functions = FUNCTIONS.map((signature) => `EXECUTE on FUNCTION ${signature}`);
  expect(Object.keys(NEEDED).sort()).toEqual([...granted, ...functions].sort());
});

test.each(table(Object.entries(NEEDED)))(
  "without %s a server reports the remedy, and its action fails",
  async (right, work) => {
    await owner.unsafe(`REVOKE ${right} FROM ${role}`);
    try {
      await expect(open()).rejects.toThrow(
        /^role \w+ lacks (?:privileges|a privilege).*: set KEYHOLD_DATABASE_MIGRATE_URL /,
      );
      await expect(work()).rejects.toThrow(/permission denied|may not read/);
    } finally {
      await owner.unsafe(`GRANT ${right} TO ${role}`);
    }
    await work();
  },
);

import { randomUUID } from "node:crypto";
import postgres from "postgres";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { ServerObserver } from "../../src/cluster/server-id.ts";
import { parseKeyFilter } from "../../src/keys/filter.ts";
import { parseOrder } from "../../src/keys/list-order.ts";
import { createBulkStore } from "../../src/postgres/bulk-store.ts";
import type { Commit } from "../../src/postgres/cluster/change-committer.ts";
import { listNodes } from "../../src/postgres/cluster/nodes.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { execute } from "../../src/postgres/connection/prepared.ts";
import { createHashSchemeStore } from "../../src/postgres/hashes/hash-scheme-store.ts";
import { createHmacKeyStore } from "../../src/postgres/hashes/hmac-key-store.ts";
import { mutationOf } from "../../src/postgres/keys/change-one.ts";
import { findConflicts } from "../../src/postgres/keys/conflicts.ts";
import { findSuspectedDuplicates } from "../../src/postgres/keys/duplicate-raw-keys.ts";
import { findExpiringTokens } from "../../src/postgres/keys/expiring-tokens.ts";
import { earliestTime, readTime } from "../../src/postgres/keys/expiry.ts";
import { createFindKeys, createLastUsedStore } from "../../src/postgres/keys/verification-store.ts";
import { listKeys } from "../../src/postgres/lists/list-keys.ts";
import {
  countDigestKeys,
  listUsedRootSecrets,
  recordRootSecretUse,
} from "../../src/postgres/signing/root-secret-use.ts";
import { createSigningKeyStore } from "../../src/postgres/signing/signing-key-store.ts";
import { table } from "../support/conformance.ts";
import { createTestDatabase, type TestDatabase, userOf } from "../support/postgres.ts";
import { operator } from "../support/principal.ts";
import { useOf } from "../support/uses.ts";
import { newKey } from "./new-keys.ts";

/** A schema with the tables and functions of another installation, whose name a transaction pooler may leave in `search_path`. */
const OTHER = "other_installation";

let database: TestDatabase;
let owner: postgres.Sql;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = postgres(database.ownerUrl, { max: 1, onnotice: () => {} });
  await owner.unsafe(`CREATE SCHEMA ${OTHER}`);
  for (const name of await tables()) await owner.unsafe(`CREATE TABLE ${OTHER}.${name} (LIKE ${name} INCLUDING ALL)`);
  const functions = await owner`
    SELECT pg_get_functiondef(oid) AS text FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND prokind = 'f'`;
  for (const { text } of functions) await owner.unsafe(text.replace(/ FUNCTION \w+\./, ` FUNCTION ${OTHER}.`));
  const role = userOf(database.url);
  await owner.unsafe(
    `GRANT USAGE ON SCHEMA ${OTHER} TO ${role}; GRANT ALL ON ALL TABLES IN SCHEMA ${OTHER} TO ${role}`,
  );
});
afterAll(async () => {
  await owner.end();
  await database.drop();
});

async function tables(): Promise<string[]> {
  const rows =
    await owner`SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`;
  return rows.map(({ relname }) => relname);
}

const NOW = new Date();
const feed: ServerObserver = { server: null, requireServer: () => undefined };
/** Changes name their server, which requires the same. */
const commit: Commit = () => Promise.reject(new Error("not used"));
const filtered = (text: string) => parseKeyFilter(text, null, () => NOW.getTime());
const EVERY = {
  kind: null,
  actorIds: null,
  filter: filtered(""),
  order: parseOrder(""),
  after: null,
  limit: 10,
} as const;
const list = (query: object) => (pool: Pool) => pool.run((sql) => listKeys(sql, { ...EVERY, ...query }, NOW));
const change = { verb: "disable", reason: null } as const;
const selection = { filter: filtered(""), filterTime: NOW, change, principal: operator };
const operation = {
  requestId: randomUUID(),
  verb: "disable",
  caller: "test",
  fingerprint: Buffer.alloc(32),
  startTime: NOW,
  matchedCount: 1,
  throughKeyId: null,
} as const;
const started = { ...operation, afterKeyId: "00000000-0000-0000-0000-000000000000", changedCount: 0, done: false };
const bulk = (pool: Pool) => createBulkStore({ lists: pool, reads: pool }, commit, commit, async () => undefined);
const hmacKeys = (pool: Pool) => createHmacKeyStore({ database: pool, lists: pool }, commit);
const signingKeys = (pool: Pool) => createSigningKeyStore(pool, commit, feed);
const schemes = (pool: Pool) => createHashSchemeStore({ database: pool, reads: pool, lists: pool }, feed);
const keyId = newKey().key.keyId;
const wrapped = { wrapped: Buffer.alloc(8), wrapKeyId: "a" };

const JWK = { kid: "a", use: "sig", alg: "EdDSA", kty: "OKP", crv: "Ed25519", x: "a" } as const;

const STATEMENTS: Readonly<Record<string, (pool: Pool) => Promise<unknown>>> = {
  "a list of one kind": list({ kind: "issued" }),
  "a list of both kinds": list({}),
  "a list of actors": list({ actorIds: ["actor_1"] }),
  "a list in another order": list({ order: parseOrder("expire_time") }),
  "a list of actors in another order": list({ order: parseOrder("name"), actorIds: ["actor_1"] }),
  "a verification": (pool) => createFindKeys(pool, feed)([{ keyId, digests: [] }]),
  "a change of one key": (pool) =>
    pool.run((sql) => execute(sql, mutationOf({ keyId, kind: null }, change, operator, NOW))),
  "last uses": (pool) => createLastUsedStore(pool)([useOf(keyId)], NOW),
  "conflicts of a key": (pool) => pool.run((sql) => findConflicts(sql, [newKey()])),
  "the time": (pool) => pool.run((sql) => readTime(sql, earliestTime(sql, NOW))),
  "the count of a bulk operation": (pool) => bulk(pool).count(selection),
  "a known bulk operation": (pool) => bulk(pool).find(operation.requestId),
  "the beginning of a bulk operation": (pool) => bulk(pool).begin(operation),
  "the keys of a bulk operation": (pool) => bulk(pool).select(started, selection, 10),
  descendants: (pool) =>
    bulk(pool).findDescendants(keyId, { change, principal: operator, requiresCaller: false, now: NOW }, 10),
  "the count of descendants": (pool) => bulk(pool).countDescendants(keyId, operator),
  "the HMAC keys": (pool) => hmacKeys(pool).list(),
  "an HMAC key": (pool) => hmacKeys(pool).find("a"),
  "the signing keys": (pool) => signingKeys(pool).list(),
  "a first signing key": (pool) => signingKeys(pool).addFirst({ kid: "a", publicJwk: JWK, ...wrapped }, NOW),
  "nodes without an algorithm": (pool) => signingKeys(pool).nodesWithout("EdDSA"),
  "the expiry of tokens": (pool) => signingKeys(pool).extendTokens("a", NOW),
  "the hash formats": (pool) => schemes(pool).read(),
  "a new hash format": (pool) =>
    schemes(pool).addScheme({ schemeId: 1, slot: 1, algorithm: "SHA256", hmacKeyId: null, affixes: wrapped }),
  "a new prefix length": (pool) => schemes(pool).addPrefixLength(8),
  "unused hash formats": (pool) => schemes(pool).removeUnused(),
  "another wrapping of an HMAC key": (pool) => schemes(pool).rewrapHmacKey("a", wrapped, "b"),
  "another wrapping of a hash format": (pool) => schemes(pool).rewrapAffixes(1, wrapped, "b"),
  "the uses of root secrets": (pool) => countDigestKeys(pool, NOW),
  "the used root secrets": listUsedRootSecrets,
  "a used root secret": (pool) => recordRootSecretUse(pool, "a"),
  nodes: listNodes,
  "suspected duplicates": findSuspectedDuplicates,
  "expiring tokens": (pool) => findExpiringTokens(pool, NOW),
};

test.for(table(Object.entries(STATEMENTS)))(
  "in a session with another schema, %s: fails, and stores nothing",
  async ([, run]) => {
    const pool = new Pool({ url: database.url, maxConnections: 1, statementTimeout: 10_000, prepare: false });
    onTestFinished(() => pool.close());
    await run(pool);
    await pool.run((sql) => sql.unsafe(`SET search_path = ${OTHER}`));
    await expect(run(pool)).rejects.toThrow("the session has an unexpected setting");
    for (const name of await tables())
      expect([name, ...(await owner`SELECT FROM ${owner(`${OTHER}.${name}`)}`)]).toEqual([name]);
    // The connection was replaced.
    await run(pool);
  },
);

import { randomBytes } from "node:crypto";
import type { Sql } from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Principal } from "../../src/domain/principal.ts";
import type { BulkStore, KeyName, KeyStore, Rotation } from "../../src/keys/ports.ts";
import { createBulkStore } from "../../src/postgres/bulk-store.ts";
import { propagating } from "../../src/postgres/cluster/change-committer.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { createKeyStore } from "../../src/postgres/key-store.ts";
import { COPY_ROWS } from "../../src/postgres/keys/insert.ts";
import { createFindKeys, createLastUsedStore } from "../../src/postgres/keys/verification-store.ts";
import { connect } from "../support/driver-client.ts";
import { anyServer, noNodes } from "../support/no-cluster.ts";
import { createTestDatabase, runAsSuperuser, type TestDatabase } from "../support/postgres.ts";
import { operator } from "../support/principal.ts";
import { useOf } from "../support/uses.ts";
import { newKey } from "./new-keys.ts";

const NOW = new Date();
const FUTURE = new Date(NOW.getTime() + 3_600_000);

let database: TestDatabase;
/** One connection with prepared statements, like those of the service. */
let pool: Pool;
let store: KeyStore;
let bulk: BulkStore;
let owner: Sql;
let superuser: Sql;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = new Pool({ url: database.url, maxConnections: 1, statementTimeout: 60_000, prepare: true });
  const commit = propagating(pool, noNodes);
  store = createKeyStore({ reads: pool, lists: pool }, commit);
  bulk = createBulkStore({ reads: pool, lists: pool }, commit, commit, async () => undefined);
  const options = { statementTimeout: 60_000, prepare: false };
  owner = connect({ ...options, url: database.ownerUrl });
  const superuserUrl = new URL(await runAsSuperuser([]));
  superuserUrl.pathname = new URL(database.url).pathname;
  superuser = connect({ ...options, url: superuserUrl.href });
});

afterAll(async () => {
  await Promise.all([pool.close(), owner.end(), superuser.end()]);
  await database.drop();
});

const SOME: Principal = { ...operator, scopes: ["keyhold:verify"], expireTime: FUTURE };
const REVOCATION = { verb: "revoke", reason: "SUPERSEDED", description: null } as const;

function rotation(graceEnd: Date | null): Rotation {
  return { version: 2, digest: { keyId: "k1", digest: randomBytes(32) }, hint: "h", graceEnd };
}

/** All operations on keys by their ids, in each form of their statement. */
async function touchKeys(): Promise<void> {
  const [issued, imported] = [newKey({ kind: "issued" }), newKey({ otherDigests: [randomBytes(32)] })];
  const repeated = newKey({ kind: "issued", requestId: randomBytes(8).toString("hex") });
  for (const key of [issued, imported, repeated]) await store.insert([key]);
  const again = { ...newKey({ kind: "issued" }), request: repeated.request };
  expect(await store.insert([again])).toMatchObject([{ outcome: "repeated" }]);
  expect(await store.insert([newKey({ digest: imported.digest.digest })])).toEqual([{ outcome: "raw_key_exists" }]);
  await store.insert(Array.from({ length: COPY_ROWS }, () => newKey()));

  const find = createFindKeys(pool, anyServer);
  const byId = { keyId: issued.key.keyId, digests: [] };
  const byDigest = { keyId: null, digests: [imported.digest.digest, randomBytes(32)] };
  expect(await find([byId])).toMatchObject([[{ key: { keyId: issued.key.keyId } }]]);
  expect(await find([byDigest])).toMatchObject([[{ key: { keyId: imported.key.keyId } }]]);
  expect(await find([byId, byDigest])).toMatchObject([[{}], [{}]]);
  await createLastUsedStore(pool)([useOf(issued.key.keyId, { oldSecret: 1 }), useOf(imported.key.keyId)], NOW);

  for (const principal of [operator, SOME]) {
    const name: KeyName = { keyId: issued.key.keyId, kind: "issued" };
    expect(await store.get(name)).not.toBeNull();
    const { actorId } = issued.key;
    const expiries = [FUTURE, null].map((time) => ({ expiry: { time, maxKeyTtl: null } }));
    const lists = [{ scopes: ["a"] }, { allowedCidrs: ["10.0.0.0/8"] }, { allowedCidrs: null }];
    const updates = [
      { name: "n" },
      ...lists,
      ...expiries,
      { metadata: { a: "b" } },
      { name: "n", scopes: [], actorId },
    ];
    for (const update of updates)
      expect(await store.change(name, { verb: "update", ...update }, principal, NOW)).not.toBeNull();
    const toggles = [{ verb: "disable", reason: null }, { verb: "enable" }, { verb: "disable", reason: "r" }] as const;
    for (const toggle of toggles) expect(await store.change(name, toggle, principal, NOW)).not.toBeNull();
    for (const graceEnd of [null, FUTURE])
      expect(await store.change(name, { verb: "rotate", ...rotation(graceEnd) }, principal, NOW)).not.toBeNull();
    for (const kind of [null, "issued"] as const) {
      const other = newKey({ kind: "issued" });
      await store.insert([other]);
      expect(await store.change({ keyId: other.key.keyId, kind }, REVOCATION, principal, NOW)).not.toBeNull();
    }
    for (const change of [REVOCATION, { verb: "disable", reason: null }] as const) {
      const many = { keyIds: [again.key.keyId], change, principal, requiresCaller: false, now: NOW };
      expect(await bulk.changeDescendants(many)).toEqual([]);
    }
    const deleted = newKey({ otherDigests: [randomBytes(32)] });
    await store.insert([deleted]);
    const imported = { keyId: deleted.key.keyId, kind: "imported" } as const;
    expect(await store.change(imported, { verb: "delete" }, principal, NOW)).not.toBeNull();
  }
}

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Plans?: readonly PlanNode[];
}

interface Prepared {
  readonly name: string;
  readonly statement: string;
  readonly parameterTypes: string;
}

const TABLES = /\b(?:api_keys|raw_key_digests)\b/;

/** Returns the connection's statements on keys, with the exact texts that were sent. */
async function preparedStatements(sql: Sql): Promise<readonly Prepared[]> {
  const rows = await sql.unsafe<Prepared[]>(
    "SELECT name, statement, parameter_types::text FROM pg_prepared_statements WHERE NOT from_sql",
  );
  return rows.filter(({ statement }) => TABLES.test(statement) && !statement.includes("pg_prepared_statements"));
}

const VALUES: Readonly<Record<string, string>> = {
  uuid: "'0198b2a4-7d3e-7c52-a1f0-000000000001'",
  "uuid[]": "'{0198b2a4-7d3e-7c52-a1f0-000000000001,0198b2a4-7d3e-7c52-a1f0-000000000002}'",
  text: "'imported'",
  "text[]": "'{ab,cd}'",
  bytea: "'\\xab'",
  jsonb: "'{}'",
  json: "'[]'",
  integer: "1",
  boolean: "true",
  '"double precision"': "1",
  '"timestamp with time zone"': "'2026-01-01T00:00:00Z'",
};

/** Returns a value for each parameter type. */
function argumentsOf({ statement, parameterTypes }: Prepared): string {
  const types = parameterTypes.slice(1, -1).split(",").filter(Boolean);
  const values = types.map((type, index) => {
    const value = statement.includes(`$${index + 1}::text::json`) ? "'[]'" : VALUES[type];
    if (value === undefined) throw new Error(`no value of type ${type}`);
    return value;
  });
  return values.length === 0 ? "" : `(${values.join(", ")})`;
}

async function explain(sql: Sql, prepared: Prepared, mode: string): Promise<PlanNode[]> {
  await sql.unsafe(`SET plan_cache_mode = ${mode}`);
  const query = `EXPLAIN (FORMAT JSON) EXECUTE "${prepared.name}"${argumentsOf(prepared)}`;
  const [row] = await sql.unsafe<{ "QUERY PLAN": [{ Plan: PlanNode }] }[]>(query);
  if (row === undefined) throw new Error("no plan");
  return flatten(row["QUERY PLAN"][0].Plan);
}

function flatten(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)];
}

/** The required search condition by index: its first column, which identifies one key. */
const SEARCHED: Readonly<Record<string, RegExp>> = {
  api_keys_pkey: /^\(key_id = /,
  api_keys_request_id: /^\(request_id = /,
  actors_pkey: /^\(actor_id = /,
  raw_key_digests_pkey: /^\(digest = /,
};

/** Returns the nodes of a plan that do not find keys by an index on single keys. */
function faults(nodes: readonly PlanNode[]): string[] {
  return nodes.flatMap((node) => {
    const { "Node Type": type, "Relation Name": table = "", "Index Name": index, "Index Cond": condition = "" } = node;
    if (index !== undefined) {
      return SEARCHED[index]?.test(condition) === true ? [] : [`${type} by ${index} on ${condition}`];
    }
    const isScan = type.endsWith("Scan") && type !== "Bitmap Heap Scan" && TABLES.test(table);
    return isScan ? [`${type} on ${table}`] : [];
  });
}

interface Plans {
  /** Number of statements that change one key. */
  readonly changes: number;
  /** Violations of the statements' plans, in both modes. */
  readonly faults: string[];
}

interface Examined extends Plans {
  /** Tables that were scanned sequentially, and indexes that were searched. */
  readonly read: string[];
}

async function examine(): Promise<Examined> {
  const read = await readBy(touchKeys);
  return { ...(await examinePlans()), read };
}

/** Examines the plans that the statements have now, of which those for any value may be kept until the next ANALYZE. */
function examinePlans(): Promise<Plans> {
  return pool.run(async (sql) => {
    const statements = await preparedStatements(sql);
    const found: string[] = [];
    for (const mode of ["force_generic_plan", "force_custom_plan"]) {
      for (const prepared of statements) {
        const wrong = faults(await explain(sql, prepared, mode));
        found.push(...wrong.map((fault) => `${mode}: ${fault}: ${prepared.statement.trim().slice(0, 200)}`));
      }
    }
    await sql.unsafe("RESET plan_cache_mode");
    const changes = statements.filter(({ statement }) => /DELETE FROM api_keys|FOR NO KEY UPDATE\),/.test(statement));
    return { changes: changes.length, faults: found };
  });
}

/** Indexes that statements and triggers may search. Checks of unique indexes count as searches. */
const READ = ["api_keys_pkey", "api_keys_raw_key", "api_keys_request_id", "raw_key_digests_pkey"];

/**
 * Returns what the pool's connection reads for `work`: the plans used, with the real arguments, and the statements
 * of triggers. Runs in one transaction, whose counters belong to this connection; those of pg_stat_user_tables are global and
 * up to ten seconds late, so that a scan by the owner could be attributed to the pool.
 */
async function readBy(work: () => Promise<void>): Promise<string[]> {
  await pool.run((sql) => sql.unsafe("BEGIN"));
  const before = await scans();
  await work();
  const after = await scans();
  await pool.run((sql) => sql.unsafe("COMMIT"));
  return Object.keys(after).filter((name) => after[name] !== before[name]);
}

async function scans(): Promise<Record<string, string>> {
  const rows = await pool.run((sql) =>
    sql.unsafe<{ name: string; count: string }[]>(`
      SELECT relname AS name, pg_stat_get_xact_numscans(oid) AS count FROM pg_class
      WHERE oid IN ('api_keys'::regclass, 'raw_key_digests'::regclass)
        OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid IN ('api_keys'::regclass, 'raw_key_digests'::regclass))
      ORDER BY relname COLLATE "C"`),
  );
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
}

/** Inserts rows like the service. */
async function grow(kind: "issued" | "imported", count: number): Promise<void> {
  await owner.unsafe(`
    INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id)
    SELECT gen_random_uuid(), '${kind}', 'Production server', 'user_0123456789', '{documents.read}', '{"team": "payments"}',
      '…abcd', now(), now(), sha256(gen_random_uuid()::text::bytea), 'k1'
    FROM generate_series(1, ${count})`);
}

/** Sets the statistics of a table with that many rows. */
async function pretend(rows: number, pages: number): Promise<void> {
  await superuser.unsafe(`
    UPDATE pg_class SET reltuples = ${rows}, relpages = ${pages}
    WHERE oid IN ('api_keys'::regclass, 'raw_key_digests'::regclass)
      OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid IN ('api_keys'::regclass, 'raw_key_digests'::regclass))`);
}

const analyze = () => owner.unsafe("VACUUM ANALYZE api_keys, raw_key_digests");

/** States of the table, in order, and how each is reached. */
const STATES: readonly (readonly [name: string, reach: () => Promise<unknown>])[] = [
  ["empty, and was never analyzed", async () => undefined],
  ["empty, and was analyzed", async () => owner.unsafe("DELETE FROM api_keys").then(analyze)],
  ["of a few keys", async () => grow("issued", 20).then(analyze)],
  ["of 500 issued keys, and none was ever imported", async () => grow("issued", 480).then(analyze)],
  ["of 30,000 keys more than in the statistics", () => grow("issued", 30_000)],
  ["of 3,000 imported keys, with none in the statistics", () => grow("imported", 3_000)],
  ["large, and was analyzed", analyze],
  ["large, and the statistics are of an empty table", () => pretend(0, 0)],
  ["of 5,000,000 keys", () => pretend(5_000_000, 500)],
];

/** Each has one statement, whatever values a change has: update, rotate, revoke, disable, enable, delete. */
const VERBS = 6;

test("every statement and trigger on single keys uses their index, for any table size and statistics", async () => {
  const found: Record<string, Examined> = {};
  for (const [name, reach] of STATES) {
    await reach();
    found[name] = await examine();
  }
  expect(found).toEqual(Object.fromEntries(STATES.map(([name]) => [name, { changes: VERBS, faults: [], read: READ }])));
}, 120_000);

test("every statement uses their index although it is planned while there is one key", async () => {
  await touchKeys();
  await owner.unsafe("DELETE FROM api_keys").then(analyze);
  await grow("issued", 1).then(analyze);
  expect(await examinePlans()).toEqual({ changes: VERBS, faults: [] });
});

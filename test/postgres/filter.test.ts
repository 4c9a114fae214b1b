import fc, { type Arbitrary } from "fast-check";
import type { Sql } from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { HashAlgorithm } from "../../src/domain/raw-key-hash.ts";
import { type KeyFilter, parseKeyFilter } from "../../src/keys/filter.ts";
import { compileFilter } from "../../src/postgres/lists/filter.ts";
import { REASONS, someFilter, someKey, someString, someTime, UUIDS } from "../keys/filter/arbitrary.ts";
import { matches, type Row } from "../keys/filter/oracle.ts";
import { printFilter } from "../keys/filter/print.ts";
import { connect } from "../support/driver-client.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { NOW_TEXT, storeRows } from "./rows.ts";

const NOW = new Date("2026-01-31T12:00:00.000Z");
const now = () => NOW.getTime();

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let sql: Sql;

beforeAll(async () => {
  database = await createTestDatabase();
  sql = connect({ url: database.url, prepare: false, statementTimeout: 10_000 });
});

afterAll(async () => {
  await sql.end();
  await database.drop();
});

const someEntries = fc.uniqueArray(fc.tuple(someKey, someString), { selector: ([key]) => key, maxLength: 4 });

/** Revoked or not; the reason accompanies the time. */
const someRevocation = fc.option(fc.tuple(someTime, fc.constantFrom(...REASONS)), { nil: [null, null] as const });

/** The hash by which an imported key is known, or its adoption. */
const someHash = fc.constantFrom(null, "SHA256", "SHA512_256", "BCRYPT", "adopted");

function hashFields(
  kind: Row["kind"],
  hash: HashAlgorithm | "adopted" | null,
): Pick<Row, "hash_algorithm" | "adopted"> {
  if (kind === "issued" || hash === null) return { hash_algorithm: null, adopted: null };
  return hash === "adopted" ? { hash_algorithm: null, adopted: true } : { hash_algorithm: hash, adopted: false };
}

const someRows: Arbitrary<Row[]> = fc
  .array(
    fc
      .record({
        name: someString,
        actor_id: someString,
        scopes: fc.array(someString, { maxLength: 3 }),
        metadata: someEntries.map((entries) => new Map(entries)),
        create_time: someTime,
        update_time: someTime,
        expire_time: fc.option(someTime),
        last_used_time: fc.option(someTime),
        rotate_time: fc.option(someTime),
        disable_time: fc.option(someTime),
        hint: fc.oneof(fc.constant(""), someString),
        created_by: fc.option(someString),
        revoked_by: fc.option(someString),
        disabled_by: fc.option(someString),
        kind: fc.constantFrom("issued", "imported"),
        revocation: someRevocation,
        hash: someHash,
      })
      .map(({ revocation: [revoke_time, revocation_reason], hash, ...row }) => {
        return { ...row, revoke_time, revocation_reason, ...hashFields(row.kind, hash) };
      }),
    { minLength: 1, maxLength: UUIDS.length },
  )
  .map((rows) => rows.map((row, index) => ({ ...row, key_id: UUIDS[index] ?? "" })));

test("a condition is true or false, never NULL, and agrees with the oracle", async () => {
  const counts = { true: 0, false: 0 };
  await fc.assert(
    fc.asyncProperty(someRows, fc.array(someFilter, { minLength: 1, maxLength: 8 }), async (rows, filters) => {
      await storeRows(sql, rows);
      for (const filter of filters) {
        const expected = rows.map((row) => matches(filter, row, NOW_TEXT));
        const condition = compileFilter(sql, parseKeyFilter(printFilter(filter), "issued", now), NOW);
        const judged = await sql<{ matches: boolean }[]>`SELECT ${condition} AS matches FROM api_keys ORDER BY key_id`;
        expect(judged.map((row) => row.matches)).toEqual(expected);
        for (const answer of expected) counts[answer ? "true" : "false"]++;
      }
    }),
    { numRuns: 200 },
  );
  expect(Math.min(counts.true, counts.false)).toBeGreaterThan(500);
});

/** The tokens of a condition; a value is `$` and a number. */
const WORDS = [
  ..."AND OR NOT IS NULL COLLATE ARRAY true false text timestamptz coalesce starts_with cardinality C 0".split(" "),
  ..."CASE WHEN THEN ELSE END uuid_send".split(" "),
  ..."key_id name actor_id scopes metadata create_time update_time expire_time last_used_time revoke_time".split(" "),
  ..."rotate_time disable_time hint created_by revoked_by disabled_by kind hash_algorithm adopt_time".split(" "),
  ..."revocation_reason REVOCATION_REASON_UNSPECIFIED".split(" "),
];
const CONDITION = new RegExp(
  `^(?:\\$\\d+|[ (),=<>?@:[\\]\\-"]|'\\{\\}'|''|'-?infinity'|'?\\b(?:${WORDS.join("|")})\\b'?)*$`,
);

test("no value is in the text of a statement", async () => {
  await fc.assert(
    fc.asyncProperty(someFilter, async (filter) => {
      const { string } = await sql`SELECT FROM api_keys WHERE ${compileFilter(sql, filter, NOW)}`.describe();
      expect(string.replace("SELECT FROM api_keys WHERE ", "")).toMatch(CONDITION);
    }),
    { numRuns: 50 },
  );
});

const PLAIN: Row = {
  key_id: "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10",
  name: "build 50%",
  actor_id: "u1",
  scopes: [],
  metadata: new Map(),
  create_time: NOW_TEXT,
  update_time: NOW_TEXT,
  expire_time: null,
  last_used_time: null,
  revoke_time: null,
  revocation_reason: null,
  rotate_time: null,
  disable_time: null,
  hint: "kh_v1_…1234",
  created_by: null,
  revoked_by: null,
  disabled_by: null,
  kind: "issued",
  ...hashFields("issued", null),
};

/** Written by hand, against errors that the oracle and the compiler share. */
const CASES: readonly [filter: string, row: Partial<Row>, matches: boolean][] = [
  ["", {}, true],
  ["status=KEY_STATUS_ACTIVE", {}, true],
  ["status=KEY_STATUS_ACTIVE", { expire_time: "2026-01-31T12:00:00.001000Z" }, true],
  ["status=KEY_STATUS_ACTIVE", { expire_time: NOW_TEXT }, false],
  ["status=KEY_STATUS_EXPIRED", { expire_time: NOW_TEXT }, true],
  ["status!=KEY_STATUS_EXPIRED", {}, true],
  ["status=KEY_STATUS_EXPIRED", { expire_time: NOW_TEXT, revoke_time: NOW_TEXT, revocation_reason: REASONS[1] }, false],
  ["status=KEY_STATUS_REVOKED", { expire_time: NOW_TEXT, revoke_time: NOW_TEXT, revocation_reason: REASONS[1] }, true],
  ["revocation_reason:*", { revoke_time: NOW_TEXT, revocation_reason: REASONS[1] }, true],
  ["revocation_reason:*", { revoke_time: NOW_TEXT, revocation_reason: REASONS[0] }, false],
  ["NOT revocation_reason:*", {}, true],
  ["revocation_reason=REVOCATION_REASON_UNSPECIFIED", { revoke_time: NOW_TEXT, revocation_reason: REASONS[0] }, true],
  ["revocation_reason=REVOCATION_REASON_UNSPECIFIED", {}, false],
  ["revocation_reason!=REVOCATION_REASON_SUPERSEDED", {}, true],
  ["expire_time<2026-01-31T12:00:00Z", {}, false],
  ["expire_time>=2026-01-31T12:00:00Z", {}, false],
  ["NOT expire_time<2026-01-31T12:00:00Z", {}, true],
  ["expire_time!=2026-01-31T12:00:00Z", {}, true],
  ["-last_used_time:*", {}, true],
  ["create_time=2026-01-31T12:00:00Z", {}, true],
  ["create_time=2026-01-31T14:00:00.000+02:00", {}, true],
  ["create_time>2026-01-31T12:00:00Z", { create_time: "2026-01-31T12:00:00.000001Z" }, true],
  ["create_time>2026-01-31T12:00:00.000001Z", { create_time: "2026-01-31T12:00:00.000001Z" }, false],
  ["name=build*", {}, true],
  ['name="build 50%*"', {}, true],
  ['name="%*"', {}, false],
  ['name="_uild*"', {}, false],
  ['name="build\\\\*"', {}, false],
  ["name!=build*", {}, false],
  ["name=Build*", {}, false],
  ["name<C", { name: "b" }, false],
  ["name>\uE000", { name: "😀" }, true],
  ["scopes:read", { scopes: ["write", "read"] }, true],
  ["scopes:rea", { scopes: ["read"] }, false],
  ["scopes:*", {}, false],
  ["NOT scopes:read", {}, true],
  ["metadata.env=prod", { metadata: new Map([["env", "prod"]]) }, true],
  ["metadata.env=prod", { metadata: new Map([["Env", "prod"]]) }, false],
  ["metadata.Env=prod", { metadata: new Map([["Env", "prod"]]) }, true],
  ["metadata.env!=prod", {}, true],
  ["metadata.env<z", {}, false],
  ["NOT metadata.env<z", {}, true],
  ['metadata.env=""', {}, false],
  ["metadata:env", { metadata: new Map([["env", ""]]) }, true],
  ["metadata:*", {}, false],
  ["kind=KEY_KIND_ISSUED", {}, true],
  ["kind!=KEY_KIND_IMPORTED", {}, true],
  ["kind=KEY_KIND_IMPORTED", {}, false],
  ["kind:*", {}, true],
  ["status=KEY_STATUS_DISABLED", { disable_time: NOW_TEXT }, true],
  ["status=KEY_STATUS_DISABLED", { disable_time: NOW_TEXT, expire_time: NOW_TEXT }, false],
  ["status=KEY_STATUS_ACTIVE", { disable_time: NOW_TEXT }, false],
  ['expire_time <= now() + "30d"', { expire_time: "2026-03-02T12:00:00.000000Z" }, true],
  ['expire_time <= now() + "30d"', { expire_time: "2026-03-02T12:00:00.000001Z" }, false],
  ['expire_time < now() + "30d"', {}, false],
  ['NOT last_used_time >= now() - "90d"', {}, true],
  ['NOT last_used_time >= now() - "90d"', { last_used_time: "2025-11-02T12:00:00.000000Z" }, false],
  ['NOT last_used_time >= now() - "90d"', { last_used_time: "2025-11-02T11:59:59.999999Z" }, true],
  ["disable_time>now()", { disable_time: NOW_TEXT }, false],
  ["revoke_time:*", {}, false],
  ["rotate_time=now()", { rotate_time: NOW_TEXT }, true],
  ["hint:*", { hint: "" }, false],
  ["hint=kh_v1_…1234", {}, true],
  ["created_by:*", {}, false],
  ["created_by!=oidc:alice", {}, true],
  ["created_by>=oidc:", { created_by: "oidc:alice" }, true],
  ["adopted=false", hashFields("imported", "SHA256"), true],
  ["adopted=false", hashFields("imported", "adopted"), false],
  ["adopted=false", {}, false],
  ["adopted=true", hashFields("imported", "adopted"), true],
  ["adopted=true", hashFields("imported", "SHA256"), false],
  ["adopted!=false", {}, true],
  ["NOT adopted:*", hashFields("imported", "SHA256"), true],
  ["hash_algorithm=HASH_ALGORITHM_SHA256", hashFields("imported", "SHA256"), true],
  ["hash_algorithm=HASH_ALGORITHM_SHA256", hashFields("imported", "BCRYPT"), false],
  ["hashAlgorithm!=HASH_ALGORITHM_SHA256", {}, true],
  ["name=x OR actor_id=u1 AND actor_id=u2", {}, false],
  ["actor_id=u1 AND name=x OR status=KEY_STATUS_ACTIVE", {}, true],
];

test.each(CASES)("%s of %o is %s", async (filter, row, matched) => {
  const stored =
    typeof row.adopted === "boolean" ? { ...PLAIN, ...row, kind: "imported" as const } : { ...PLAIN, ...row };
  await storeRows(sql, [stored]);
  expect(await select(parseKeyFilter(filter, stored.kind, now), stored.kind)).toHaveLength(matched ? 1 : 0);
});

test.each([
  ["key_id=0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10", "btree (key_id)"],
  ["actor_id=u1", "btree (actor_id)"],
  ["actor_id>=u1 AND actor_id<u2", "btree (actor_id)"],
  ["create_time>2026-01-31T12:00:00Z", "btree (create_time)"],
  ["expire_time<=2026-01-31T12:00:00Z", "btree ((coalesce(expire_time, 'infinity')))"],
  ["scopes:read", "gin (scopes)"],
  ["metadata.env=prod", "gin (metadata)"],
  ["metadata:env", "gin (metadata)"],
])("an index serves %s", async (filter, index) => {
  const plan = await sql.begin(async (transaction) => {
    await transaction`CREATE TEMPORARY TABLE keys (LIKE api_keys) ON COMMIT DROP`;
    await transaction.unsafe(`CREATE INDEX ON keys USING ${index}`);
    await transaction`SET LOCAL enable_seqscan = off`;
    return await transaction<{ "QUERY PLAN": string }[]>`
      EXPLAIN SELECT FROM keys WHERE ${compileFilter(sql, parseKeyFilter(filter, "issued", now), NOW)}`;
  });
  expect(plan.map((line) => line["QUERY PLAN"]).join("\n")).toContain("Index Cond: ");
});

async function select(filter: KeyFilter, kind: Row["kind"] = "issued"): Promise<string[]> {
  const rows = await sql<{ keyId: string }[]>`
    SELECT key_id FROM api_keys WHERE kind = ${kind} AND ${compileFilter(sql, filter, NOW)} ORDER BY key_id`;
  return rows.map((row) => row.keyId);
}

import fc, { type Arbitrary } from "fast-check";
import type { Sql } from "postgres";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, expect, test } from "vitest";
import { deriveKeyRing } from "../../src/domain/server-keys.ts";
import { parseKeyFilter } from "../../src/keys/filter.ts";
import { ORDER_FIELDS, type OrderField } from "../../src/keys/list-order.ts";
import type { ListQuery } from "../../src/keys/ports.ts";
import { listKeys as listPage, parseListRequest } from "../../src/keys/read.ts";
import { listKeys } from "../../src/postgres/lists/list-keys.ts";
import { STRINGS } from "../keys/filter/arbitrary.ts";
import { matches, type Row } from "../keys/filter/oracle.ts";
import { connect } from "../support/driver-client.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { addRows, NOW_TEXT, storeRows } from "./rows.ts";

const NOW = new Date(NOW_TEXT);
const now = () => NOW.getTime();
const ring = deriveKeyRing({ current: Buffer.alloc(32, 1), retired: [] }, "page-token");

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

/** Few, so that many keys have the same value; around `NOW`, and some differ by a microsecond. */
const TIMES = [
  "2025-10-01T00:00:00.000000Z",
  "2026-01-31T11:59:59.999999Z",
  NOW_TEXT,
  "2026-01-31T12:00:00.000001Z",
  "2026-02-10T00:00:00.123456Z",
  "2027-01-01T00:00:00.000000Z",
];
const ACTORS = ["a", "b", "c"];

const someTime = fc.option(fc.constantFrom(...TIMES));

const someRow: Arbitrary<Row> = fc
  .record({
    age: fc.nat(5),
    random: fc.uint8Array({ minLength: 16, maxLength: 16 }),
    name: fc.constantFrom(...STRINGS.slice(0, 12), "é", "😀", "\uE000"),
    actor_id: fc.constantFrom(...ACTORS),
    expire_time: someTime,
    last_used_time: someTime,
    kind: fc.constantFrom("issued", "imported"),
    isRevoked: fc.boolean(),
  })
  .map(({ age, random, isRevoked, ...fields }) => {
    const msecs = NOW.getTime() - age * 86_400_000;
    const created = new Date(msecs).toISOString().replace("Z", "000Z");
    return {
      ...fields,
      ...{ key_id: uuidv7({ msecs, random }), create_time: created, update_time: created },
      ...{
        scopes: [],
        metadata: new Map(),
        hint: "",
        created_by: null,
        revoked_by: null,
        disabled_by: null,
        rotate_time: null,
        disable_time: null,
      },
      revoke_time: isRevoked ? NOW_TEXT : null,
      revocation_reason: isRevoked ? ("SUPERSEDED" as const) : null,
      ...{ hash_algorithm: null, adopted: null },
    };
  });

const FILTERS = [
  "",
  "status=active",
  "status=expired",
  "expire_time > now()",
  'expire_time > now() AND expire_time <= now() + "30d"',
  "NOT expire_time <= now()",
  "expire_time != 2026-01-31T12:00:00Z",
  "-expire_time:*",
  "expire_time:* OR last_used_time:*",
  'NOT last_used_time >= now() - "90d"',
  "last_used_time <= now() OR -last_used_time:*",
  "last_used_time = 2026-01-31T12:00:00.000001Z",
  "NOT (last_used_time:* AND status=revoked)",
  'name = "a*"',
  'name >= "A" AND name < "b"',
  'create_time > now() - "3d"',
  "kind=issued OR actor_id=a",
];

const someList = fc.record({
  field: fc.constantFrom(...ORDER_FIELDS),
  isDescending: fc.boolean(),
  filter: fc.constantFrom(...FILTERS),
  kind: fc.constantFrom("issued", "imported", null),
  actorIds: fc.constantFrom<(readonly string[] | null)[]>(null, null, ["a"], ["b", "a"], ["nobody"], []),
  pageSize: fc.integer({ min: 1, max: 9 }),
});
type List = typeof someList extends Arbitrary<infer T> ? T : never;

/** The order of PostgreSQL: no value is the greatest, texts are ordered by code point. */
function compareValues(left: string | null, right: string | null): number {
  if (left === null || right === null) return Number(left === null) - Number(right === null);
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

function sorted(rows: readonly Row[], field: OrderField, isDescending: boolean): Row[] {
  const ascending = rows.toSorted(
    (left, right) => compareValues(left[field], right[field]) || compareValues(left.key_id, right.key_id),
  );
  return isDescending ? ascending.reverse() : ascending;
}

function expectedIds(rows: readonly Row[], { field, isDescending, filter, kind, actorIds }: List): string[] {
  const parsed = parseKeyFilter(filter, kind, now);
  const listed = rows.filter(
    (row) =>
      (kind === null || row.kind === kind) &&
      (actorIds === null || actorIds.includes(row.actor_id)) &&
      matches(parsed, row, NOW_TEXT),
  );
  return sorted(listed, field, isDescending).map((row) => row.key_id);
}

/** Reads all pages as a handler does, and calls `between` after each page. */
async function walk(list: List, between: () => Promise<void>): Promise<string[]> {
  const { field, isDescending, kind, actorIds, filter, pageSize } = list;
  const store = { list: (query: ListQuery) => listKeys(sql, query, NOW) };
  const context = { store, clock: { now }, rings: { pageToken: ring } };
  const orderBy = isDescending ? `${field} desc` : field;
  const ids: string[] = [];
  let pageToken = "";
  do {
    const request = parseListRequest(context, kind, { filter, orderBy, pageSize, pageToken });
    const page = await listPage(context, { restrictions: { actorIds } }, request);
    expect(page.keys.length).toBeLessThanOrEqual(pageSize);
    ids.push(...page.keys.map((key) => key.keyId));
    expect(ids.length).toBeLessThanOrEqual(100);
    pageToken = page.nextPageToken;
    if (pageToken !== "") await between();
  } while (pageToken !== "");
  return ids;
}

const someRows = fc.uniqueArray(someRow, { minLength: 25, maxLength: 40, size: "max", selector: (row) => row.key_id });

test("the pages of a list are all matching keys in the requested order", async () => {
  let listed = 0;
  await fc.assert(
    fc.asyncProperty(someRows, fc.array(someList, { minLength: 8, maxLength: 8 }), async (rows, lists) => {
      await storeRows(sql, rows);
      for (const list of lists) {
        const expected = expectedIds(rows, list);
        expect(await walk(list, async () => undefined)).toEqual(expected);
        listed += expected.length;
      }
    }),
    { numRuns: 15 },
  );
  expect(listed).toBeGreaterThan(500);
});

/** A change between two pages. */
type Change =
  | { readonly what: "create"; readonly row: Row }
  | { readonly what: "delete" | "change"; readonly place: number; readonly row: Row };

const someChange: Arbitrary<Change> = fc.oneof(
  fc.record({ what: fc.constant("create" as const), row: someRow }),
  fc.record({ what: fc.constantFrom("delete" as const, "change" as const), place: fc.nat(39), row: someRow }),
);

test("changes between pages neither skip nor repeat a key that is not changed", async () => {
  await fc.assert(
    fc.asyncProperty(someRows, someList, fc.array(someChange, { maxLength: 20 }), async (rows, list, changes) => {
      await storeRows(sql, rows);
      const touched = new Set<string>();
      const left = [...changes];
      const ids = await walk(list, async () => {
        const next = left.shift();
        if (next !== undefined) touched.add(await apply(rows, next));
      });
      const isUntouched = (keyId: string) => !touched.has(keyId);
      expect(ids.filter(isUntouched)).toEqual(expectedIds(rows, list).filter(isUntouched));
    }),
    { numRuns: 50 },
  );
});

/** Returns the id of the key that was changed. */
async function apply(rows: readonly Row[], change: Change): Promise<string> {
  if (change.what === "create") {
    const isNew = rows.every((row) => row.key_id !== change.row.key_id);
    if (isNew) await sql`DELETE FROM api_keys WHERE key_id = ${change.row.key_id}`;
    if (isNew) await addRows(sql, [change.row]);
    return change.row.key_id;
  }
  const keyId = rows[change.place % rows.length]?.key_id ?? "";
  const { expire_time, last_used_time, name } = change.row;
  if (change.what === "delete") await sql`DELETE FROM api_keys WHERE key_id = ${keyId}`;
  else
    await sql`
      UPDATE api_keys SET name = ${name}, expire_time = ${expire_time}::text::timestamptz,
        last_used_time = ${last_used_time}::text::timestamptz WHERE key_id = ${keyId}`;
  return keyId;
}

test("the parts of a page share the statement timeout", async () => {
  await storeRows(sql, []);
  const owner = connect({ url: database.ownerUrl, prepare: false, statementTimeout: 10_000 });
  const hurried = connect({ url: database.url, prepare: false, statementTimeout: 1_500 });
  try {
    // Each statement that reads the keys of a list takes 0.8 s.
    await owner.unsafe(`
      CREATE FUNCTION wait() RETURNS boolean LANGUAGE sql AS 'SELECT pg_sleep(0.8) IS NOT NULL';
      CREATE POLICY slowly ON api_keys USING ((SELECT wait()));
      ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY`);
    await owner`
      INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id)
      VALUES (gen_random_uuid(), 'issued', 'a', 'a', '{}', '{}', '', now(), now(), '', '')`;
    const page = (field: OrderField) => {
      const list = { actorIds: null, kind: "issued", after: null, limit: 9 } as const;
      const filter = parseKeyFilter("actor_id=a", "issued", now);
      return listKeys(hurried, { ...list, filter, order: { field, isDescending: false } }, NOW);
    };
    expect(await page("name")).toHaveLength(1);
    await expect(page("expire_time")).rejects.toMatchObject({
      code: "LIST_TOO_SLOW",
      message: expect.stringMatching(/^filter: .* add a condition on actor_id, name, create_time or a metadata entry/),
    });
  } finally {
    await owner.unsafe("ALTER TABLE api_keys DISABLE ROW LEVEL SECURITY; DROP POLICY IF EXISTS slowly ON api_keys");
    await Promise.all([owner.end(), hurried.end()]);
  }
});

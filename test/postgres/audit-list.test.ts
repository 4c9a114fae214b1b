import { randomUUID } from "node:crypto";
import fc, { type Arbitrary } from "fast-check";
import type { Sql } from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuditEvent } from "../../src/audit/event.ts";
import {
  CALL_FIELDS,
  type EventComparison,
  type EventFilter,
  matches,
  parseEventFilter,
} from "../../src/audit/filter.ts";
import { type AuditStore, listEvents, parseEventPage } from "../../src/audit/log.ts";
import { deriveKeyRing } from "../../src/domain/server-keys.ts";
import type { Expression, Operator } from "../../src/filter/expression.ts";
import { createAuditStore } from "../../src/postgres/audit/audit-store.ts";
import { compileEventFilter } from "../../src/postgres/audit/filter.ts";
import type { Database } from "../../src/postgres/connection/pool.ts";
import { STRINGS, someString, UUIDS } from "../keys/filter/arbitrary.ts";
import { connect } from "../support/driver-client.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { storeEvents } from "./events.ts";

let database: TestDatabase;
let sql: Sql;
/** Only the owner may write events. */
let owner: Sql;
let store: AuditStore;

beforeAll(async () => {
  database = await createTestDatabase();
  const options = { prepare: false, statementTimeout: 10_000 };
  [sql, owner] = [connect({ ...options, url: database.url }), connect({ ...options, url: database.ownerUrl })];
  const pool: Database = { run: async (work) => work(sql, { isReplicationCancelled: false }) };
  store = createAuditStore({ database: pool, lists: pool });
});

afterAll(async () => {
  await Promise.all([sql.end(), owner.end()]);
  await database.drop();
});

const TIMES = [
  "2025-10-01T00:00:00.000Z",
  "2026-01-31T11:59:59.999Z",
  "2026-01-31T12:00:00.000Z",
  "2026-02-10T00:00:00.123Z",
];
const LITERALS = [
  ...TIMES.map((time) => time.replace("Z", "000Z")),
  "2026-01-31T12:00:00.000001Z",
  "2026-01-31T11:59:59.999999Z",
];
const ACTIONS = ["key.issued", "key.revoked", "key", "keys.truncated", "signing_key.rotated"];

const someText = fc.option(fc.oneof(fc.constant(""), someString), { nil: null });

const someEvents: Arbitrary<AuditEvent[]> = fc
  .array(
    fc.record({
      time: fc.constantFrom(...TIMES).map((time) => new Date(time)),
      action: fc.constantFrom(...ACTIONS),
      keyId: fc.option(fc.constantFrom(...UUIDS)),
      actorId: someText,
      resourceId: someText,
      call: fc
        .record({ caller: someString, fields: fc.array(someText, { minLength: CALL_FIELDS.length }) })
        .map(({ caller, fields }) => ({
          ...{ method: "local" as const, subject: "" },
          ...Object.fromEntries(
            CALL_FIELDS.flatMap((name, index) => (fields[index] == null ? [] : [[name, fields[index]]])),
          ),
          caller,
        })),
    }),
    { minLength: 25, maxLength: 40, size: "max" },
  )
  .map((events) => events.map((event, seq) => ({ ...event, seq, before: null, after: null, salt: null })));

const someOperator = fc.constantFrom<Operator>("=", "<", "<=", ">", ">=");
const STRING_FIELDS = ["action", "actor_id", "resource_id", ...CALL_FIELDS] as const;
const literal = <T extends string>(...values: T[]) => fc.constantFrom(...values);

const someComparison: Arbitrary<EventComparison> = fc.oneof(
  fc.record({
    ...{ node: literal("integer"), field: literal("seq"), operator: someOperator },
    value: fc.oneof(fc.bigInt(0n, 40n), fc.constant(10n ** 18n - 1n)),
  }),
  fc.record({
    ...{ node: literal("time"), field: literal("time"), operator: someOperator, value: fc.constantFrom(...LITERALS) },
  }),
  fc.record({
    ...{ node: literal("uuid"), field: literal("key_id"), operator: someOperator, value: fc.constantFrom(...UUIDS) },
  }),
  fc.record({
    ...{ node: literal("string"), field: literal(...STRING_FIELDS), operator: someOperator },
    value: fc.oneof(someString, fc.constantFrom("", ...ACTIONS)),
  }),
  fc.record({
    ...{ node: literal("prefix"), field: literal("action"), value: fc.constantFrom("", "key", "key.", ...STRINGS) },
  }),
  fc.record({
    node: literal("present"),
    field: literal("seq", "time", "key_id", ...STRING_FIELDS),
  }),
);

const { expression } = fc.letrec<{ expression: Expression<EventComparison> }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    someComparison,
    fc.record({ node: literal("and", "or"), operands: fc.array(tie("expression"), { minLength: 2, maxLength: 3 }) }),
    fc.record({ node: literal("not"), operand: tie("expression") }),
  ),
}));
const someFilter: Arbitrary<EventFilter> = fc.oneof(
  { weight: 1, arbitrary: fc.constant({ node: "all" as const }) },
  { weight: 19, arbitrary: expression },
);

test("the condition of a list and the filter of a watcher agree, and are never NULL", async () => {
  const counts = { true: 0, false: 0 };
  await fc.assert(
    fc.asyncProperty(someEvents, fc.array(someFilter, { minLength: 8, maxLength: 8 }), async (events, filters) => {
      await storeEvents(owner, events);
      for (const filter of filters) {
        const expected = events.map((event) => matches(filter, event));
        const condition = compileEventFilter(sql, filter);
        const judged = await sql<{ matches: boolean }[]>`SELECT ${condition} AS matches FROM audit_events ORDER BY seq`;
        expect(judged.map((row) => row.matches)).toEqual(expected);
        for (const answer of expected) counts[answer ? "true" : "false"]++;
      }
    }),
    { numRuns: 100 },
  );
  expect(Math.min(counts.true, counts.false)).toBeGreaterThan(1_000);
});

const CASES: readonly [filter: string, matches: boolean][] = [
  ["", true],
  ["seq=7", true],
  ["seq>7", false],
  ['action="key.*"', true],
  ['action="key*"', true],
  ['action="ke.*"', false],
  ["action=key", false],
  ["time=2026-01-31T12:00:00Z", true],
  ["time<2026-01-31T12:00:00.000001Z", true],
  ["time>=2026-01-31T12:00:00.000001Z", false],
  ['time > now() - "7d"', true],
  ["key_id=0198B2A4-7d3e-7c52-a1f0-5c9a3b7e2d10", true],
  ['caller="oidc:alice"', true],
  ["NOT resource_id:*", true],
  ['resource_id!=""', true],
  ["rpc:*", false],
  ['client_ip="203.0.113.9" peer_ip="10.0.0.7"', true],
  ['request_id="r" OR node="n"', true],
];

/** Written by hand, against errors that both share. */
test.each(CASES)("the filter %j", async (text, isMatch) => {
  const now = Date.parse("2026-01-31T12:00:00.000Z");
  const event: AuditEvent = {
    ...{ seq: 7, time: new Date(now), action: "key.revoked", keyId: "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10" },
    ...{ actorId: "billing", resourceId: null, before: null, after: null, salt: null },
    call: {
      ...{ caller: "oidc:alice", method: "oidc", subject: "alice", rpc: "", node: "n" },
      ...{ peer_ip: "10.0.0.7", client_ip: "203.0.113.9" },
    },
  };
  await storeEvents(owner, [event]);
  const filter = parseEventFilter(text, () => now);
  expect(matches(filter, event)).toBe(isMatch);
  const order = { field: "time", isDescending: true } as const;
  expect(await store.list({ filter, order, after: null, limit: 1 })).toEqual(isMatch ? [event] : []);
});

describe("the pages of a list", () => {
  const context = {
    clock: { now: () => 0 },
    rings: { pageToken: deriveKeyRing({ current: Buffer.alloc(32, 1), retired: [] }, "page-token") },
  };

  async function walk(filter: string, orderBy: string, pageSize: number): Promise<number[]> {
    const seqs: number[] = [];
    let pageToken = "";
    do {
      const page = parseEventPage(context, { filter, orderBy, pageSize, pageToken });
      const { items, nextPageToken } = await listEvents({ ...context, store }, page, () => 0);
      expect(items.length).toBeLessThanOrEqual(pageSize);
      seqs.push(...items.map(({ seq }) => seq));
      expect(seqs.length).toBeLessThanOrEqual(100);
      pageToken = nextPageToken;
    } while (pageToken !== "");
    return seqs;
  }

  const byTime = (a: AuditEvent, b: AuditEvent) => a.time.getTime() - b.time.getTime() || a.seq - b.seq;
  const ORDERS: Readonly<Record<string, (a: AuditEvent, b: AuditEvent) => number>> = {
    "": (a, b) => byTime(b, a),
    time: byTime,
    "time desc": (a, b) => byTime(b, a),
    seq: (a, b) => a.seq - b.seq,
    "seq desc": (a, b) => b.seq - a.seq,
  };

  test.each(Object.keys(ORDERS))("in the order %j are all events that match, each once", async (orderBy) => {
    let listed = 0;
    const someFilters = fc.constantFrom("", 'action="key.*"', "key_id:*", `time > ${TIMES[1]}`, "seq > 9 -seq > 21");
    await fc.assert(
      fc.asyncProperty(someEvents, someFilters, fc.integer({ min: 1, max: 9 }), async (events, text, pageSize) => {
        await storeEvents(owner, events);
        const filter = parseEventFilter(text, () => 0);
        const expected = events.filter((event) => matches(filter, event)).sort(ORDERS[orderBy]);
        expect(await walk(text, orderBy, pageSize)).toEqual(expected.map(({ seq }) => seq));
        listed += expected.length;
      }),
      { numRuns: 15 },
    );
    expect(listed).toBeGreaterThan(100);
  });
});

test("a read continues behind missing events", async () => {
  const event = {
    action: "key.issued",
    keyId: null,
    actorId: null,
    resourceId: null,
    before: null,
    after: null,
    salt: null,
  };
  const call = { caller: "c", method: "local", subject: "" } as const;
  const events = [3, 4, 6].map((seq) => ({ ...event, call, seq, time: new Date(0) }));
  await storeEvents(owner, events);
  expect(await store.read(0, 2)).toEqual(events.slice(0, 2));
  expect(await store.read(4, 5)).toEqual(events.slice(1));
  expect(await store.read(7, 5)).toEqual([]);
});

test("a list that the database does not end in time names the fields that have an index", async () => {
  const slow = connect({ url: database.url, prepare: false, statementTimeout: 50 });
  const pool: Database = { run: async (work) => work(slow, { isReplicationCancelled: false }) };
  const lock = await owner.reserve();
  try {
    await lock`BEGIN`;
    await lock`LOCK TABLE audit_events`;
    const filter = parseEventFilter(`call_id="${randomUUID()}"`, () => 0);
    const order = { field: "time", isDescending: true } as const;
    const listed = createAuditStore({ database: pool, lists: pool }).list({ filter, order, after: null, limit: 1 });
    await expect(listed).rejects.toMatchObject({
      code: "LIST_TOO_SLOW",
      message: expect.stringContaining("order by time, and add a condition on key_id, actor_id, caller or time"),
    });
  } finally {
    await lock`ROLLBACK`;
    lock.release();
    await slow.end();
  }
});

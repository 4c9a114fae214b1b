import type { Sql } from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EventPosition, parseEventPage } from "../../src/audit/log.ts";
import { deriveKeyRing } from "../../src/domain/server-keys.ts";
import { selectEvents } from "../../src/postgres/audit/audit-store.ts";
import { connect } from "../support/driver-client.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";

/** Four events of each key, an event a second. */
const COUNT = 120_000;
const NOW = Date.parse("2026-11-21T00:00:00.000Z");

let database: TestDatabase;
let sql: Sql;

beforeAll(async () => {
  database = await createTestDatabase();
  const owner = connect({ url: database.ownerUrl, prepare: false, statementTimeout: 60_000 });
  await owner`
    INSERT INTO audit_events (seq, time, action, key_id, actor_id, caller, call)
    SELECT seq, ${new Date(NOW)}::timestamptz - (${COUNT} - seq) * interval '1 s', 'key.updated', md5((seq / 4)::text)::uuid,
      'actor-' || seq / 4 % 1000, 'oidc:' || seq % 30, '{"caller": "c", "call_id": "random"}'
    FROM generate_series(0, ${COUNT - 1}) AS seq ON CONFLICT DO NOTHING`;
  await owner`VACUUM ANALYZE audit_events`;
  await owner.end();
  sql = connect({ url: database.url, prepare: false, statementTimeout: 60_000 });
});

afterAll(async () => {
  await sql.end();
  await database.drop();
});

const context = {
  clock: { now: () => NOW },
  rings: { pageToken: deriveKeyRing({ current: Buffer.alloc(32, 1), retired: [] }, "page-token") },
};

interface PlanNode {
  readonly "Node Type": string;
  readonly "Index Name"?: string;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly PlanNode[];
}

/** Returns the kinds of nodes of the plan of a page, the index of its events, and the pages of 8 KiB that were read. */
async function explain(text: string, orderBy: string, after: EventPosition | null) {
  const { filter, order } = parseEventPage(context, { filter: text, orderBy, pageSize: 0, pageToken: "" });
  const [row] = await sql<{ "QUERY PLAN": [{ Plan: PlanNode }] }[]>`
    EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${selectEvents(sql, { filter, order, after, limit: 51 })}`;
  const root = row?.["QUERY PLAN"][0].Plan;
  if (root === undefined) throw new Error("no plan");
  const nodes = flatten(root);
  return {
    kinds: new Set(nodes.map((node) => node["Node Type"])),
    index: nodes.findLast((node) => node["Index Name"] !== undefined)?.["Index Name"],
    pages: root["Shared Hit Blocks"] + root["Shared Read Blocks"],
  };
}

function flatten(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)];
}

const KEY = 'key_id="c4ca4238-a0b9-2382-0dcc-509a6f75849b"';

const BY_INDEX: readonly [filter: string, index: string][] = [
  ["", "audit_events_time"],
  ['time < now() - "10h"', "audit_events_time"],
  ['time >= now() - "20h" AND time < now() - "10h"', "audit_events_time"],
  ["actor_id=actor-7", "audit_events_actor"],
  ["actor_id=nobody", "audit_events_actor"],
  ['actor_id=actor-7 time < now() - "10h"', "audit_events_actor"],
  ['caller="oidc:7"', "audit_events_caller"],
  ['caller="oidc:7" action="key.*"', "audit_events_caller"],
  ['caller="oidc:nobody"', "audit_events_caller"],
];

describe.each(BY_INDEX)("of the events with %j", (filter, index) => {
  test.each(["time desc", "time"])("any page in the order %j is read from its index only", async (orderBy) => {
    for (const after of [null, { seq: COUNT / 2 }]) {
      const plan = await explain(filter, orderBy, after);
      expect([...plan.kinds].filter((kind) => /Sort|Seq Scan|Bitmap/.test(kind))).toEqual([]);
      expect(plan.index).toBe(index);
      expect(plan.pages).toBeLessThanOrEqual(70);
    }
  });
});

test("the events of a key are read from its index", async () => {
  const plan = await explain(KEY, "", null);
  expect(plan.index).toBe("audit_events_key");
  expect(plan.pages).toBeLessThanOrEqual(20);
});

test.each(["seq", "seq desc"])(
  "any page of the whole log in the order %j is read from the primary key only",
  async (orderBy) => {
    for (const after of [null, { seq: COUNT / 2 }]) {
      const plan = await explain("", orderBy, after);
      expect([...plan.kinds].filter((kind) => /Sort|Seq Scan|Bitmap/.test(kind))).toEqual([]);
      expect(plan.index).toBe("audit_events_pkey");
      expect(plan.pages).toBeLessThanOrEqual(20);
    }
  },
);

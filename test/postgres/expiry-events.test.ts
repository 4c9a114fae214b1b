import { randomBytes, randomUUID } from "node:crypto";
import postgres, { type ISql, type Sql } from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { replayAuditLog } from "../support/audit-replay.ts";
import { table } from "../support/conformance.ts";
import { eventually } from "../support/keyhold.ts";
import { isAwaited } from "../support/locked-row.ts";
import { type Seeded, seeded, seededBy } from "../support/seeded.ts";
import { openSchema } from "./new-keys.ts";

/** The events of expiries, with a clock of the database that tests set (migration 0029). */

const DAY = 86_400_000;
const WARNINGS = [30, 7, 1];

/** Days since the start of the test. */
type Days = number;

const START = Date.parse("2030-01-01T00:00:00.000Z");
const dateOf = (days: Days) => new Date(START + days * DAY);

/** An event as `<action> <threshold>`, such as `expiring 7` or `expired`. */
interface Recorded {
  readonly key: string;
  readonly expiry: Days;
  readonly what: string;
}

interface NewRow {
  readonly kind?: "issued" | "imported";
  readonly created?: Days;
  readonly expiry: Days | null;
}

class Fixture {
  readonly sql: Sql;
  now: Days = 0;

  constructor(sql: Sql) {
    this.sql = sql;
  }

  /** `defect` replaces a part of the function. */
  static async open(defect: readonly (readonly [from: string, to: string])[] = []): Promise<Fixture> {
    const { ownerUrl } = await openSchema();
    const sql = postgres(ownerUrl, { max: 8, onnotice: () => {} });
    onTestFinished(() => sql.end());
    await sql`CREATE TABLE test_clock AS SELECT ${dateOf(0)}::timestamptz AS time`;
    await sql`CREATE FUNCTION test_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT time FROM test_clock'`;
    const [{ text } = { text: "" }] = await sql<{ text: string }[]>`
      SELECT pg_get_functiondef('audit_expiry'::regproc) AS text`;
    let changed = text.replaceAll("clock_timestamp()", "test_clock()");
    for (const [from, to] of defect) {
      expect(changed).toContain(from);
      changed = changed.replaceAll(from, to);
    }
    await sql.unsafe(changed);
    await sql`UPDATE expiry_sweeps SET expire_time = ${dateOf(0)}`;
    return new Fixture(sql);
  }

  async at(now: Days): Promise<void> {
    this.now = now;
    await this.sql`UPDATE test_clock SET time = ${dateOf(now)}`;
  }

  /** Creates keys and returns their ids. */
  async create(row: NewRow, count: number, sql: ISql = this.sql): Promise<string[]> {
    const { kind = "issued", created = this.now, expiry } = row;
    const rows = Array.from({ length: count }, () => ({
      ...{
        key_id: randomUUID(),
        kind,
        name: "a key",
        actor_id: "actor_1",
        scopes: "{}",
        metadata: sql.json({}),
        hint: "",
      },
      ...{
        create_time: dateOf(created),
        update_time: dateOf(created),
        expire_time: expiry === null ? null : dateOf(expiry),
      },
      ...{ digest: randomBytes(32), digest_key_id: "k1" },
    }));
    await sql`INSERT INTO api_keys ${sql(rows)}`;
    return rows.map(({ key_id }) => key_id);
  }

  async createOne(row: NewRow): Promise<string> {
    const [id = ""] = await this.create(row, 1);
    return id;
  }

  async move(key: string, expiry: Days | null): Promise<void> {
    await this.sql`UPDATE api_keys SET expire_time = ${expiry === null ? null : dateOf(expiry)} WHERE key_id = ${key}`;
  }

  async revoke(key: string): Promise<void> {
    await this.sql`UPDATE api_keys SET revoke_time = now(), revocation_reason = 'SUPERSEDED' WHERE key_id = ${key}`;
  }

  /** Runs the job of one node once. */
  async run(warnings: readonly Days[] = WARNINGS, maxKeys = 500) {
    const [run] = await this.sql`
      SELECT * FROM audit_expiry(${warnings.map((days) => `${days * DAY} ms`)}::text[]::interval[], ${maxKeys})`;
    return { expiring: run?.expiring as number, expired: run?.expired as number, lag: run?.lag as number };
  }

  /** Runs the sequencer and the job until nothing is due, and returns the events that were recorded since the last call. */
  async settle(warnings?: readonly Days[], maxKeys?: number): Promise<Recorded[]> {
    for (let idle = 0; idle < 2; ) {
      await this.sequence();
      const { expiring, expired, lag } = await this.run(warnings, maxKeys);
      idle = expiring + expired + lag === 0 ? idle + 1 : 0;
    }
    return this.take();
  }

  async sequence(): Promise<void> {
    for (let assigned = 1000; assigned === 1000; )
      [{ assigned } = { assigned: 0 }] = await this.sql<
        { assigned: number }[]
      >`SELECT assigned FROM audit_sequence(1000)`;
  }

  #taken = -1;

  /** Returns the events that were recorded since the last call. */
  async take(): Promise<Recorded[]> {
    await this.sequence();
    const events = await this.sql`
      SELECT seq::int, action, key_id, after FROM audit_events
      WHERE action IN ('key.expiring', 'key.expired') AND seq > ${this.#taken} ORDER BY seq`;
    this.#taken = events.at(-1)?.seq ?? this.#taken;
    return events.map(({ action, key_id, after }) => {
      const threshold = after.threshold === undefined ? "" : ` ${Number.parseFloat(after.threshold) / 86_400}`;
      const expiry = (Date.parse(after.expire_time) - START) / DAY;
      return { key: key_id, expiry, what: action.slice("key.".length) + threshold };
    });
  }
}

/** Returns what is recorded on each of these days. */
async function daily(fixture: Fixture, days: readonly Days[]): Promise<Record<Days, string[]>> {
  const found: Record<Days, string[]> = {};
  for (const day of days) {
    await fixture.at(day);
    found[day] = (await fixture.settle()).map(({ what }) => what);
  }
  return found;
}

test.each(["issued", "imported"] as const)("a key that is %s has an event for each threshold, once", async (kind) => {
  const fixture = await Fixture.open();
  await fixture.createOne({ kind, expiry: 100 });
  expect(await daily(fixture, [0, 69.9, 70, 80, 93, 98.9, 99, 99.9, 100, 101, 200])).toEqual({
    ...{ 0: [], 69.9: [], 70: ["expiring 30"], 80: [], 93: ["expiring 7"], 98.9: [] },
    ...{ 99: ["expiring 1"], 99.9: [], 100: ["expired"], 101: [], 200: [] },
  });
});

test("the event has the key, its actor, the expiry, the threshold and the caller, and changes no key", async () => {
  const fixture = await Fixture.open();
  const key_id = await fixture.createOne({ created: -50, expiry: 0.5 });
  await fixture.settle();
  const [event] = await fixture.sql`SELECT * FROM audit_events WHERE action = 'key.expiring'`;
  expect(event).toMatchObject({
    ...{ key_id, actor_id: "actor_1", resource_id: null, before: null, call: { method: "database" } },
    after: { expire_time: "2030-01-01T12:00:00+00:00", threshold: "86400s" },
  });
  expect((await replayAuditLog(fixture.sql)).violations).toEqual([]);
  expect((await replayAuditLog(fixture.sql, "with rows")).violations).toEqual([]);
});

test("a threshold that is not shorter than the life of a key has no event", async () => {
  const fixture = await Fixture.open();
  await fixture.createOne({ expiry: 7 });
  expect(await daily(fixture, [0, 1, 6, 7])).toEqual({ 0: [], 1: [], 6: ["expiring 1"], 7: ["expired"] });
  await fixture.createOne({ expiry: 7.5 });
  expect(await daily(fixture, [7, 7.5])).toEqual({ 7: [], 7.5: ["expired"] });
});

test("after a downtime, only the smallest threshold that applies has an event", async () => {
  const fixture = await Fixture.open();
  await fixture.createOne({ expiry: 100 });
  expect(await daily(fixture, [0, 95, 99, 150])).toEqual({
    0: [],
    95: ["expiring 7"],
    99: ["expiring 1"],
    150: ["expired"],
  });
});

test("an expiry that is moved has its own events, and one that is removed has none", async () => {
  const fixture = await Fixture.open();
  const key = await fixture.createOne({ expiry: 100 });
  await daily(fixture, [0, 75]);
  await fixture.move(key, 77);
  expect(await daily(fixture, [75, 76])).toEqual({ 75: ["expiring 7"], 76: ["expiring 1"] });
  await fixture.move(key, 200);
  expect(await daily(fixture, [76, 170])).toEqual({ 76: [], 170: ["expiring 30"] });
  await fixture.move(key, 160);
  expect(await daily(fixture, [170])).toEqual({ 170: ["expired"] });
  await fixture.move(key, null);
  expect(await daily(fixture, [170, 300])).toEqual({ 170: [], 300: [] });
  await fixture.move(key, 301);
  expect(await daily(fixture, [300, 301])).toEqual({ 300: ["expiring 1"], 301: ["expired"] });
});

test("an expiry that is moved there and back has no event twice", async () => {
  const fixture = await Fixture.open();
  const key = await fixture.createOne({ expiry: 100 });
  await daily(fixture, [95]);
  await fixture.move(key, 200);
  await fixture.settle();
  await fixture.move(key, 100);
  expect(await daily(fixture, [95, 99, 100])).toEqual({ 95: [], 99: ["expiring 1"], 100: ["expired"] });
  for (const expiry of [200, 100]) {
    await fixture.move(key, expiry);
    expect(await fixture.settle()).toEqual([]);
  }
});

test("a key that is revoked or deleted has no event, and one that is disabled has", async () => {
  const fixture = await Fixture.open();
  const [revoked = "", deleted = "", disabled = ""] = await fixture.create({ expiry: 100 }, 3);
  await fixture.revoke(revoked);
  await fixture.sql`DELETE FROM api_keys WHERE key_id = ${deleted}`;
  await fixture.sql`UPDATE api_keys SET disable_time = now() WHERE key_id = ${disabled}`;
  for (const [day, what] of [
    [70, "expiring 30"],
    [99, "expiring 1"],
    [100, "expired"],
  ]) {
    await fixture.at(Number(day));
    expect(await fixture.settle()).toEqual([{ key: disabled, expiry: 100, what }]);
  }
});

test("keys that had expired before the migration have no event", async () => {
  const fixture = await Fixture.open();
  const [key = ""] = await fixture.create({ created: -100, expiry: -1 }, 10);
  await fixture.sequence();
  await fixture.sql`UPDATE expiry_sweeps SET next_seq = (SELECT size FROM audit_log)`;
  expect(await fixture.settle()).toEqual([]);
  await fixture.sql`UPDATE api_keys SET name = 'another' WHERE key_id = ${key}`;
  expect(await fixture.settle()).toEqual([]);
});

test("a key that is committed after its time has passed has its event", async () => {
  const fixture = await Fixture.open();
  const transaction = await fixture.sql.reserve();
  await transaction`BEGIN`;
  const [late] = await fixture.create({ expiry: 0.5 }, 1, transaction);
  const other = await fixture.createOne({ expiry: 0.6 });
  await fixture.at(1);
  expect(await fixture.settle()).toEqual([{ key: other, expiry: 0.6, what: "expired" }]);
  await transaction`COMMIT`;
  transaction.release();
  expect(await fixture.settle()).toEqual([{ key: late, expiry: 0.5, what: "expired" }]);
});

test.each([
  ["revoked", "revoke_time = now(), revocation_reason = 'SUPERSEDED'"],
  ["prolonged", "expire_time = '2040-01-01'"],
])("a key that is being %s has no event after that change", async (_, change) => {
  const fixture = await Fixture.open();
  const key = await fixture.createOne({ expiry: 1 });
  const transaction = await fixture.sql.reserve();
  await transaction`BEGIN`;
  await transaction`UPDATE api_keys SET ${transaction.unsafe(change)} WHERE key_id = ${key}`;
  await fixture.at(1);
  const running = fixture.run();
  await eventually(() => isAwaited(fixture.sql));
  await transaction`COMMIT`;
  transaction.release();
  await running;
  expect(await fixture.settle()).toEqual([]);
});

test("nodes that run at once record each event once", async () => {
  const fixture = await Fixture.open();
  const ids = await fixture.create({ expiry: 100 }, 300);
  const sameTime = await fixture.create({ kind: "imported", expiry: 99.5 }, 50);
  const found: Recorded[] = [];
  for (const day of [75, 94, 101]) {
    await fixture.at(day);
    await fixture.sequence();
    const node = async (): Promise<void> => {
      const { expiring, expired, lag } = await fixture.run(WARNINGS, 7);
      if (expiring + expired + lag > 0) await node();
    };
    await Promise.all([node(), node(), node()]);
    found.push(...(await fixture.take()));
  }
  const texts = found.map(({ key, what }) => `${key} ${what}`);
  expect(new Set(texts).size).toBe(texts.length);
  expect(texts).toHaveLength(3 * (ids.length + sameTime.length));
});

test("a run has bounded work, and says how late it is", async () => {
  const fixture = await Fixture.open();
  await fixture.create({ expiry: 1 }, 25);
  await fixture.at(1.5);
  const runs: unknown[] = [];
  for (let run = 0; run < 4; run++) runs.push(await fixture.run([], 10));
  expect(runs).toEqual([
    { expiring: 0, expired: 10, lag: DAY / 2 },
    { expiring: 0, expired: 10, lag: DAY / 2 },
    { expiring: 0, expired: 5, lag: 0 },
    { expiring: 0, expired: 0, lag: 0 },
  ]);
});

test("nodes with other settings, and one that is switched off, prevent no event of the others", async () => {
  const fixture = await Fixture.open();
  const key = await fixture.createOne({ expiry: 100 });
  const found: string[] = [];
  for (const [day, nodes] of [
    [0, [WARNINGS, [14], []]],
    [70, [[], [14], WARNINGS]],
    [87, [[], WARNINGS, [14]]],
    [93, [[14], WARNINGS]],
    [99, [[14], [], WARNINGS]],
    [100, [[], [14]]],
  ] as const) {
    await fixture.at(day);
    for (const warnings of nodes) found.push(...(await fixture.settle(warnings)).map(({ what }) => `${day}: ${what}`));
  }
  expect(found).toEqual(["70: expiring 30", "87: expiring 14", "93: expiring 7", "99: expiring 1", "100: expired"]);
  await fixture.move(key, 105);
  for (const warnings of [[], [14]]) await fixture.settle(warnings);
  expect(await fixture.settle([7])).toEqual([{ key, expiry: 105, what: "expiring 7" }]);
});

test("a threshold that is configured later warns of the keys that are within it", async () => {
  const fixture = await Fixture.open();
  const [near, far, expired] = await Promise.all(
    [5, 12, 1].map((expiry) => fixture.createOne({ created: -60, expiry })),
  );
  await fixture.settle([7]);
  await fixture.at(2);
  expect(await fixture.settle([])).toEqual([{ key: expired, expiry: 1, what: "expired" }]);
  expect(await fixture.settle([14, 7])).toEqual([{ key: far, expiry: 12, what: "expiring 14" }]);
  await fixture.at(4.5);
  expect(await fixture.settle([14, 1])).toEqual([{ key: near, expiry: 5, what: "expiring 1" }]);
});

/** The clock of the database is set back, as by a failover, and a key expires in the time that it passes again. */
async function setBack(fixture: Fixture): Promise<Record<Days, string[]>> {
  await fixture.createOne({ expiry: 100 });
  await daily(fixture, [100]);
  await fixture.at(98);
  await fixture.createOne({ created: 50, expiry: 98.5 });
  return daily(fixture, [98, 98.5, 100]);
}

const AFTER_SET_BACK = { 98: ["expiring 1"], 98.5: ["expired"], 100: [] };

test("when the clock of the database is set back, no event is repeated or missing", async () => {
  expect(await setBack(await Fixture.open())).toEqual(AFTER_SET_BACK);
});

test("notices are deleted a week after the expiry, and when the key is deleted", async () => {
  const fixture = await Fixture.open();
  const [first = "", second] = await fixture.create({ kind: "imported", expiry: 10 }, 2);
  const remaining = async () => (await fixture.sql`SELECT key_id FROM expiry_notices`).map(({ key_id }) => key_id);
  await daily(fixture, [9, 10]);
  await fixture.sql`DELETE FROM api_keys WHERE key_id = ${first}`;
  await fixture.settle();
  expect(await remaining()).toEqual([second]);
  await daily(fixture, [16.9]);
  expect(await remaining()).toEqual([second]);
  expect(await daily(fixture, [17.1])).toEqual({ 17.1: [] });
  expect(await remaining()).toEqual([]);
});

test("a run without anything to do writes nothing", async () => {
  const fixture = await Fixture.open();
  await fixture.create({ expiry: 100 }, 10);
  await daily(fixture, [75]);
  const position = () => fixture.sql`SELECT xmin::text, * FROM expiry_sweeps ORDER BY threshold`;
  const before = await position();
  await fixture.at(76);
  await fixture.run();
  expect(await position()).toEqual(before);
});

/** What the oracle knows of a key. */
interface Known {
  readonly created: Days;
  expiry: Days | null;
  isRevoked: boolean;
}

/** Days after an expiry for which it is known that its events were recorded. */
const MEMORY = 7;

/**
 * Executes random changes, each followed by runs of a random node, and returns how the events differ from those of an oracle, which examines
 * all keys after each change.
 */
async function simulate(fixture: Fixture, choices: Seeded, steps: number): Promise<string[]> {
  const keys = new Map<string, Known>();
  /** The smallest threshold by `<key> <expiry>`. */
  const noticed = new Map<string, number>();
  let latest = 0;
  const violations: string[] = [];
  const settings = [WARNINGS, WARNINGS, [14, 2], []];
  const day = (from: number, to: number) => fixture.now + choices.below((to - from) * 8) / 8 + from;
  const change = async (): Promise<string> => {
    const [key = ""] = keys.size === 0 ? [] : [choices.pick([...keys.keys()])];
    const known = keys.get(key);
    const verb = choices.below(12);
    if (verb < 4 || known === undefined) {
      const kind = choices.pick(["issued", "imported"] as const);
      const row = { kind, created: fixture.now, expiry: choices.below(8) === 0 ? null : day(0, 45) };
      const transaction = await fixture.sql.reserve();
      await transaction`BEGIN`;
      const [id = ""] = await fixture.create(row, 1, transaction);
      if (choices.below(2) === 0) {
        await advance(0.5);
        await settle();
      }
      await transaction`COMMIT`;
      transaction.release();
      keys.set(id, { created: row.created, expiry: row.expiry, isRevoked: false });
      return `create ${id} ${row.expiry}`;
    }
    if (verb < 7) {
      const expiry = choices.below(6) === 0 ? null : day(-3, 45);
      await fixture.move(key, expiry);
      known.expiry = expiry;
      if (expiry !== null && expiry < latest - MEMORY) noticed.delete(`${key} ${expiry}`);
      return `move ${key} to ${expiry}`;
    }
    if (verb === 7 && !known.isRevoked) {
      await fixture.revoke(key);
      known.isRevoked = true;
      return `revoke ${key}`;
    }
    if (verb === 8) {
      await fixture.sql`DELETE FROM api_keys WHERE key_id = ${key}`;
      keys.delete(key);
      return `delete ${key}`;
    }
    await advance(verb === 9 ? -0.5 : choices.pick([0.5, 2, 10]));
    return `now ${fixture.now}`;
  };
  const advance = async (days: Days): Promise<void> => {
    await fixture.at(fixture.now + days);
    latest = Math.max(latest, fixture.now);
  };
  const settle = async (): Promise<void> => {
    const warnings = choices.pick(settings);
    const due = [...keys].flatMap(([key, { created, expiry, isRevoked }]): Recorded[] => {
      if (expiry === null || isRevoked) return [];
      const left = expiry - fixture.now;
      const thresholds = left <= 0 ? [0] : warnings.filter((one) => left <= one && one < expiry - created);
      const smallest = Math.min(...thresholds);
      if (thresholds.length === 0 || (noticed.get(`${key} ${expiry}`) ?? Number.POSITIVE_INFINITY) <= smallest)
        return [];
      noticed.set(`${key} ${expiry}`, smallest);
      return [{ key, expiry, what: smallest === 0 ? "expired" : `expiring ${smallest}` }];
    });
    const texts = (events: readonly Recorded[]) => events.map((event) => JSON.stringify(event)).sort();
    const [expected, found] = [texts(due), texts(await fixture.settle(warnings, choices.pick([1, 3, 500])))];
    const place = `day ${fixture.now}, warnings ${warnings}`;
    violations.push(...expected.filter((text) => !found.includes(text)).map((text) => `missing ${text}: ${place}`));
    violations.push(
      ...found
        .filter((text, at) => !expected.includes(text) || found.indexOf(text) < at)
        .map((text) => `false ${text}: ${place}`),
    );
  };
  for (let step = 0; step < steps && violations.length === 0; step++) {
    for (let count = choices.below(4); count >= 0; count--) await change();
    await settle();
  }
  return violations;
}

test("random changes have the events of an oracle", async () => {
  const fixture = await Fixture.open();
  expect(await simulate(fixture, seededBy("EXPIRY_SEED"), 300)).toEqual([]);
  expect((await replayAuditLog(fixture.sql)).violations).toEqual([]);
});

const DEFECTS = table([
  ["repeats events", [["WHERE notice.threshold > excluded.threshold", ""]]],
  ["finds no changes in the log", [["AND key_id IS NOT NULL", "AND false"]]],
  ["finds only changes in the log", [["reached.ids || changed.ids", "changed.ids"]]],
  ["ignores the life of keys", [["threshold < expire_time - create_time", "true"]]],
  ["warns of the largest threshold", [["min(threshold) AS", "max(threshold) AS"]]],
  ["includes revoked keys", [["AND revoke_time IS NULL", ""]]],
  ["skips keys at the end of a batch", [["sweep.next_seq := changed.seq + 1", "sweep.next_seq := sweep.next_seq"]]],
  [
    "forgets which key of a time was the last",
    [
      [
        "greatest(sweep.expire_time, clock) END, uuid_send(sweep.key_id)",
        "greatest(sweep.expire_time, clock) END, '\\xffffffffffffffffffffffffffffffff'::bytea",
      ],
    ],
  ],
  ["forgets notices at once", [["interval '7 days'", "interval '-100 days'"]]],
] as const);

test.each(DEFECTS)(
  "the oracle detects a function that %s",
  async (_, defect) => {
    const fixture = await Fixture.open(defect);
    expect(await simulate(fixture, seeded(3), 300)).not.toEqual([]);
  },
  120_000,
);

test("a function that ignores that the clock was set back misses events", async () => {
  const fixture = await Fixture.open([["least(sweep.expire_time, horizon)", "sweep.expire_time"]]);
  expect(await setBack(fixture)).not.toEqual(AFTER_SET_BACK);
});

/** Returns the pages of 8 KiB that a run has read. */
async function pagesOf(fixture: Fixture): Promise<number> {
  const [row] = await fixture.sql`
    EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM audit_expiry('{30 d,7 d,1 d}', 500)`;
  const { Plan: plan } = row?.["QUERY PLAN"][0] ?? {};
  return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
}

test("a run reads what is due by indexes, among many keys of which most have expired", async () => {
  const fixture = await Fixture.open();
  await fixture.sql.begin(async (sql) => {
    await sql`ALTER TABLE api_keys DISABLE TRIGGER USER`;
    await sql`
      INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, expire_time, digest, digest_key_id)
      SELECT gen_random_uuid(), (ARRAY['issued', 'imported'])[n % 2 + 1], 'a key', 'actor_1', '{}', '{}', '', ${dateOf(-900)}, ${dateOf(-900)},
        ${dateOf(0)}::timestamptz + (n - 30000) * interval '1 min', sha256(n::text::bytea), 'k1'
      FROM generate_series(1, 40000) AS n`;
    await sql`ALTER TABLE api_keys ENABLE TRIGGER USER`;
  });
  await fixture.sql`INSERT INTO expiry_notices SELECT key_id, expire_time, '0' FROM api_keys WHERE expire_time BETWEEN ${dateOf(-7)} AND ${dateOf(0)}`;
  await fixture.sql`VACUUM ANALYZE`;
  await fixture.settle();
  expect(await pagesOf(fixture)).toBeLessThan(150);
  await fixture.at(0.25);
  await fixture.sequence();
  // For each of the 4 × 360 events: the key, the notice with two indexes, and the event.
  expect(await pagesOf(fixture)).toBeLessThan(4 * 360 * 30);
});

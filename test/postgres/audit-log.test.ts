import postgres, { type ISql, type Sql } from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { propagating } from "../../src/postgres/cluster/change-committer.ts";
import { createKeyStore } from "../../src/postgres/key-store.ts";
import { replayAuditLog } from "../support/audit-replay.ts";
import { table } from "../support/conformance.ts";
import { noNodes } from "../support/no-cluster.ts";
import { newKey, openSchema } from "./new-keys.ts";

type Rename = (transaction: ISql, keyId: string, name: string) => Promise<unknown>;

/** A database with two keys, whose events are in the log, and two open transactions. */
interface Fixture {
  readonly sql: Sql;
  readonly first: ISql;
  readonly second: ISql;
  readonly a: string;
  readonly b: string;
  readonly rename: Rename;
}

const rename: Rename = (transaction, keyId, name) =>
  transaction`UPDATE api_keys SET name = ${name} WHERE key_id = ${keyId}`;

/** `change` is a defect of the database. */
async function open(change = async (_sql: Sql): Promise<Rename> => rename): Promise<Fixture> {
  const { ownerUrl, pool } = await openSchema();
  const sql = postgres(ownerUrl, { max: 4, onnotice: () => {} });
  onTestFinished(() => sql.end());
  const [a, b] = [newKey(), newKey()];
  await createKeyStore({ reads: pool, lists: pool }, propagating(pool, noNodes)).insert([a, b]);
  expect((await replayAuditLog(sql)).violations).toEqual([]);
  const changed = await change(sql);
  const [first, second] = [await sql.reserve(), await sql.reserve()];
  onTestFinished(() => {
    first.release();
    second.release();
  });
  await first`BEGIN`;
  await second`BEGIN`;
  return { sql, first, second, a: a.key.keyId, b: b.key.keyId, rename: changed };
}

/** Two transactions change one key; that with the smaller transaction id is the second to do so. */
async function olderLast({ first, second, a, b, rename }: Fixture): Promise<void> {
  await rename(first, b, "by the older transaction");
  await rename(second, a, "first");
  await second`COMMIT`;
  await rename(first, a, "second");
  await first`COMMIT`;
}

/** Of two transactions that with the larger id of an event is committed, and its event added to the log, before the other. */
async function largerFirst({ sql, first, second, a, b, rename }: Fixture): Promise<void> {
  await rename(first, a, "smaller");
  await rename(second, b, "larger");
  await second`COMMIT`;
  expect((await replayAuditLog(sql)).violations).toEqual([]);
  await first`COMMIT`;
}

async function rolledBack({ first, second, a, rename }: Fixture): Promise<void> {
  await rename(first, a, "never committed");
  await first`ROLLBACK`;
  await second`ROLLBACK`;
}

const SCHEDULES = { olderLast, largerFirst, rolledBack };

test.each(table(Object.entries(SCHEDULES)))("the log describes the tables after %s", async (_, run) => {
  const fixture = await open();
  await run(fixture);
  const { events, violations } = await replayAuditLog(fixture.sql);
  expect(violations).toEqual([]);
  expect(events.every(({ seq }) => seq !== null)).toBe(true);
});

/** Replaces parts of the sequencer. */
async function changeSequencer(sql: Sql, changes: readonly (readonly [from: string, to: string])[]): Promise<Rename> {
  const [{ text } = { text: "" }] = await sql<{ text: string }[]>`
    SELECT pg_get_functiondef('audit_sequence(integer)'::regprocedure) AS text`;
  let changed = text;
  for (const [from, to] of changes) {
    expect(changed).toContain(from);
    changed = changed.replace(from, to);
  }
  await sql.unsafe(changed);
  return rename;
}

const byTransactionId = (sql: Sql) =>
  changeSequencer(sql, [
    ["RETURNING *", "RETURNING *, xmin::text::bigint AS xid"],
    ["OVER (ORDER BY id)", "OVER (ORDER BY xid, id)"],
  ]);

async function pastHoles(sql: Sql): Promise<Rename> {
  await sql`CREATE SEQUENCE audit_position MINVALUE 0`;
  return changeSequencer(sql, [
    [
      "FROM audit_pending ORDER BY id LIMIT max",
      "FROM audit_pending WHERE id > (SELECT last_value FROM audit_position) ORDER BY id LIMIT max",
    ],
    ["RETURNING *", "RETURNING *, setval('audit_position', id)"],
  ]);
}

/** Writes each event in a transaction of its own. */
async function apart(sql: Sql): Promise<Rename> {
  await sql`DROP TRIGGER keys_updated_audited ON api_keys`;
  return async (transaction, keyId, name) => {
    await sql`
      INSERT INTO audit_pending (action, key_id, call, before, after)
      SELECT 'key.updated', key_id, audit_call(), jsonb_build_object('name', name), jsonb_build_object('name', ${name}::text)
      FROM api_keys WHERE key_id = ${keyId}`;
    await rename(transaction, keyId, name);
  };
}

/** For each defect, the schedule that exposes it. */
const DEFECTS = table([
  ["orders events by transaction id", byTransactionId, olderLast, /^event \d+: key\.updated of key \S+: .*before, not/],
  ["takes the largest id for its position", pastHoles, largerFirst, /^1 committed events were left out of the log$/],
  ["writes events in transactions of their own", apart, rolledBack, /^key \S+ is .*, by its events .*never committed/],
] as const);

test.each(DEFECTS)("the replay detects a log that %s", async (_, defect, run, expected) => {
  const fixture = await open(defect);
  await run(fixture);
  expect((await replayAuditLog(fixture.sql)).violations).toContainEqual(expect.stringMatching(expected));
});

test("a log that is younger than the tables describes the rows that it mentions", async () => {
  const { sql, a } = await open();
  await sql`DELETE FROM audit_events`;
  await sql`UPDATE audit_log SET size = 0`;
  await rename(sql, a, "with an event");
  expect((await replayAuditLog(sql, "with rows")).violations).toEqual([]);
  expect((await replayAuditLog(sql)).violations).not.toEqual([]);
  await sql`ALTER TABLE api_keys DISABLE TRIGGER keys_updated_audited`;
  await rename(sql, a, "without an event");
  expect((await replayAuditLog(sql, "with rows")).violations).toEqual([expect.stringContaining("without an event")]);
});

test("an event that has waited for months is added to the log", async () => {
  const { sql } = await open();
  await sql`INSERT INTO audit_pending (time, action, call) VALUES (now() - interval '60 days', 'key.updated', '{"caller": "c"}')`;
  const [run] = await sql`SELECT assigned, lag FROM audit_sequence(1000)`;
  expect(run).toEqual({ assigned: 1, lag: expect.closeTo(60 * 86_400_000, -5) });
});

import postgres, { type Sql } from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { AuditFeed, type Watched } from "../../src/audit/feed.ts";
import { parseEventFilter } from "../../src/audit/filter.ts";
import { type AuditStore, getEvent } from "../../src/audit/log.ts";
import { deriveKeyRing } from "../../src/domain/server-keys.ts";
import { createAuditStore } from "../../src/postgres/audit/audit-store.ts";
import { openSchema } from "./new-keys.ts";

const ALL = parseEventFilter("", () => 0);

interface Fixture {
  readonly owner: Sql;
  readonly store: AuditStore;
  /** Records this number of events, and adds them to the log. */
  record(count: number): Promise<void>;
  /** Returns a node with its watchers. */
  node(options?: { readonly heartbeat?: number; readonly capacity?: number }): Node;
}

interface Node {
  readonly feed: AuditFeed;
  /** Begins a stream, which ends with the test. */
  watch(startSeq: number | null, filter?: string): AsyncGenerator<Watched>;
}

async function open(): Promise<Fixture> {
  const { ownerUrl, pool } = await openSchema();
  const owner = postgres(ownerUrl, { max: 1, onnotice: () => {} });
  onTestFinished(() => owner.end());
  const store = createAuditStore({ database: pool, lists: pool });
  await store.sequence();
  const record = async (count: number) => {
    await owner`INSERT INTO used_root_secrets (digest_key_id) SELECT gen_random_uuid()::text FROM generate_series(1, ${count})`;
    await store.sequence();
  };
  const node: Fixture["node"] = (options) => {
    const feed = new AuditFeed({ store, monotonic: () => performance.now(), onWatch: () => {}, ...options });
    const watch: Node["watch"] = (startSeq, filter) => {
      const ended = new AbortController();
      onTestFinished(() => ended.abort());
      return feed.watch(startSeq, filter === undefined ? ALL : parseEventFilter(filter, () => 0), ended.signal);
    };
    return { feed, watch };
  };
  return { owner, store, record, node };
}

/** Returns the positions of the next events. */
async function take(stream: AsyncGenerator<Watched>, count: number): Promise<number[]> {
  const seqs: number[] = [];
  while (seqs.length < count) {
    const { done, value } = await stream.next();
    if (done) throw new Error("the stream has ended");
    if (value.event) seqs.push(value.event.seq);
  }
  return seqs;
}

/** Waits until a stream has begun, which its first heartbeat says: what is recorded before is not in it. */
async function begun(stream: AsyncGenerator<Watched>, nextSeq: number): Promise<void> {
  expect((await stream.next()).value).toEqual({ event: null, nextSeq });
}

const numbers = (first: number, count: number) => Array.from({ length: count }, (_, place) => first + place);

test("a stream sends what is recorded from then on, each event once and in order", async () => {
  const { store, record, node } = await open();
  const { feed, watch } = node();
  const { size } = await store.bounds();
  const stream = watch(null);
  await begun(stream, size);
  expect(feed.watchers).toBe(1);
  const first = take(stream, 1);
  await feed.advance();
  await record(1);
  await feed.advance();
  expect(await first).toEqual([size]);
  const next = take(stream, 700);
  for (const count of [1, 599, 100]) {
    await record(count);
    await feed.advance();
  }
  expect(await next).toEqual(numbers(size + 1, 700));
});

test("a stream from any position sends all events, those before the kept ones and while it reads them", async () => {
  const { store, record, node } = await open();
  const { feed, watch } = node({ capacity: 100 });
  await record(1_500);
  const { size } = await store.bounds();
  const stream = watch(0);
  expect(await take(stream, 700)).toEqual(numbers(0, 700));
  await feed.advance();
  await record(50);
  await feed.advance();
  expect(await take(stream, size + 50 - 700)).toEqual(numbers(700, size + 50 - 700));
});

test("a stream continues on another node behind the last event that was received", async () => {
  const { store, record, node } = await open();
  const [one, other] = [node(), node()];
  await record(10);
  const before = one.watch(0);
  const { value } = await before.next();
  await before.return(undefined);
  expect(one.feed.watchers).toBe(0);
  const { size } = await store.bounds();
  expect(await take(other.watch(value.nextSeq), size - 1)).toEqual(numbers(1, size - 1));
});

test("a stream with a filter sends the events that match", async () => {
  const { store, record, node } = await open();
  await record(20);
  const { size } = await store.bounds();
  const stream = node().watch(0, `seq >= ${size - 3} AND action="root_secret.*"`);
  expect(await take(stream, 3)).toEqual(numbers(size - 3, 3));
});

test("a heartbeat has the position behind all events that were examined", async () => {
  const { store, node } = await open();
  const { size } = await store.bounds();
  const stream = node({ heartbeat: 10 }).watch(0, 'action="of.nothing"');
  expect((await stream.next()).value).toEqual({ event: null, nextSeq: size });
  expect((await stream.next()).value).toEqual({ event: null, nextSeq: size });
});

test("a stream that has caught up and then falls behind the kept events is ended, and others are not", async () => {
  const { store, record, node } = await open();
  const { feed, watch } = node({ capacity: 10 });
  const { size } = await store.bounds();
  const [slow, fast] = [watch(null), watch(null)];
  await Promise.all([begun(slow, size), begun(fast, size)]);
  const firsts = [take(slow, 1), take(fast, 1)];
  await feed.advance();
  await record(1);
  await feed.advance();
  expect(await Promise.all(firsts)).toEqual([[size], [size]]);
  for (let round = 0; round < 3; round++) {
    await record(8);
    await feed.advance();
    expect(await take(fast, 8)).toEqual(numbers(size + 1 + 8 * round, 8));
  }
  await expect(take(slow, 1)).rejects.toMatchObject({ code: "WATCH_TOO_SLOW" });
});

test("a node without watchers keeps no events and reads none", async () => {
  const { record, node } = await open();
  const { feed, watch } = node();
  const stream = watch(0);
  await take(stream, 1);
  await stream.return(undefined);
  expect(feed.watchers).toBe(0);
  await record(1);
  await feed.advance();
  expect(feed.isBehind(Number.MAX_SAFE_INTEGER)).toBe(false);
});

test("a stream ends when its signal aborts while it waits", async () => {
  const { store, node } = await open();
  const { feed } = node();
  const ended = new AbortController();
  const stream = feed.watch(null, ALL, ended.signal);
  await begun(stream, (await store.bounds()).size);
  const next = stream.next();
  ended.abort();
  expect((await next).done).toBe(true);
  expect(feed.watchers).toBe(0);
});

test("the owner prunes old events, which is an event, and positions before the rest are out of range", async () => {
  const { owner, store, record, node } = await open();
  await record(600);
  await owner`UPDATE audit_events SET time = now() - interval '400 days' WHERE seq < 550`;
  const prune = async (limit = 1_000_000) => {
    const [row] = await owner`SELECT audit_prune(now() - interval '1 year', ${limit})::int AS pruned`;
    return row?.pruned;
  };
  // Events that the tree does not have stay.
  expect(await prune()).toBe(0);
  await owner`UPDATE audit_tree SET size = (SELECT size FROM audit_log)`;
  expect(await prune(300)).toBe(256);
  // The rest begins with a complete tile.
  expect(await prune()).toBe(256);
  expect(await prune()).toBe(0);
  await store.sequence();
  const { first, size } = await store.bounds();
  expect(first).toBe(512);
  const [, last] = await store.read(size - 2, 2);
  expect(last).toMatchObject({
    action: "audit.pruned",
    call: { method: "database" },
    after: { count: 256, first_seq: 512 },
  });
  const outOfRange = { code: "AUDIT_SEQ_OUT_OF_RANGE" };
  for (const start of [0, 511, size + 1]) await expect(node().watch(start).next()).rejects.toMatchObject(outOfRange);
  expect(await take(node().watch(512), 1)).toEqual([512]);
  const context = {
    store,
    clock: { now: Date.now },
    rings: { pageToken: deriveKeyRing({ current: Buffer.alloc(32, 1), retired: [] }, "page-token") },
  };
  await expect(getEvent(context, 3)).rejects.toMatchObject({ code: "AUDIT_EVENT_NOT_FOUND" });
});

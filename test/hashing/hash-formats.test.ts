import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { HashSchemeSpec } from "../../src/domain/raw-key-hash.ts";
import { deriveKeyRing } from "../../src/domain/server-keys.ts";
import { createHashFormats } from "../../src/hashing/hash-formats.ts";
import { rewrapHashSecrets } from "../../src/hashing/rewrap.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { createHashSchemeStore } from "../../src/postgres/hashes/hash-scheme-store.ts";
import { anyServer } from "../support/no-cluster.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";

let database: TestDatabase;
let pool: Pool;
let store: ReturnType<typeof createHashSchemeStore>;
let reads: number;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = new Pool({ url: database.url, maxConnections: 4, statementTimeout: 10_000, prepare: true });
  const real = createHashSchemeStore({ database: pool, lists: pool, reads: pool }, anyServer);
  store = {
    ...real,
    read: () => {
      reads++;
      return real.read();
    },
  };
});
beforeEach(() => {
  reads = 0;
});
afterAll(async () => {
  await pool.close();
  await database.drop();
});

const roots = { current: Buffer.alloc(32, 1), retired: [] };
const ring = deriveKeyRing(roots, "hash-scheme-wrap");
const spec = (prefix: string): HashSchemeSpec => ({ algorithm: "SHA256", prefix, suffix: "", hmacKeyId: null });

/** A node that is notified of nothing unless the test changes `version`. */
function newNode(more: { ring?: typeof ring; onUnusable?: (id: number) => void } = {}) {
  const state: { version: number | null; renewals: number } = { version: 1, renewals: 0 };
  const schemes = createHashFormats({
    ...{ store, ring, random: systemRandom, version: () => state.version },
    renewed: async () => {
      state.renewals++;
      state.version = 2;
    },
    ...more,
  });
  return { state, schemes };
}

const prefixesOf = async ({ schemes }: ReturnType<typeof newNode>) =>
  (await schemes.lookups()).schemes.map(({ prefix }) => prefix).sort();

test("a node knows what it has added before it is notified of it", async () => {
  const node = newNode();
  expect(await prefixesOf(node)).toEqual([]);
  await node.schemes.schemeId(spec("a"));
  expect(await prefixesOf(node)).toEqual(["a"]);
  await node.schemes.requirePrefixLength(12);
  expect((await node.schemes.lookups()).prefixLengths).toEqual([12]);
});

test("lookups are read once for each change, and are returned without a promise in between", async () => {
  const node = newNode();
  await Promise.all(Array.from({ length: 10 }, () => node.schemes.lookups()));
  expect(reads).toBe(1);
  const first = node.schemes.lookups();
  expect(first).not.toBeInstanceOf(Promise);
  node.state.version = 7;
  expect(node.schemes.lookups()).toBeInstanceOf(Promise);
  const second = await node.schemes.lookups();
  expect(second).toEqual(first);
  // What is derived from a scheme is memoized by object.
  expect(second.schemes[0]).toBe((await first).schemes[0]);
});

test("without a lease lookups are not used, except the last known ones for stale verdicts", async () => {
  const node = newNode();
  await node.schemes.lookups();
  node.state.version = null;
  expect(node.schemes.lastLookups().schemes).toHaveLength(1);
  await node.schemes.lookups();
  expect(node.state.renewals).toBe(1);
});

test("a change that is notified while lookups are read is not missed", async () => {
  const [node, other] = [newNode(), newNode()];
  await node.schemes.lookups();
  node.state.version = 2;
  const before = node.schemes.lookups();
  await other.schemes.schemeId(spec("b"));
  node.state.version = 3;
  expect(await prefixesOf(node)).toEqual(["a", "b"]);
  await before;
  expect(await prefixesOf(node)).toEqual(["a", "b"]);
});

test("lookups reject if the store cannot be read, and are read again", async () => {
  const node = newNode();
  const { read } = store;
  const failing = { ...store, read: () => Promise.reject(new Error("unreachable")) };
  const broken = createHashFormats({
    ...{ store: failing, ring, random: systemRandom, version: () => 1, renewed: async () => {} },
  });
  await expect(broken.lookups()).rejects.toThrow("unreachable");
  failing.read = read as never;
  expect((await broken.lookups()).schemes).toHaveLength(2);
  expect(await prefixesOf(node)).toEqual(["a", "b"]);
});

test("texts around raw keys are stored encrypted, and a scheme that does not unwrap is reported once", async () => {
  const rows = await pool.run((sql) => sql<{ wrappedAffixes: Buffer }[]>`SELECT wrapped_affixes FROM hash_schemes`);
  for (const { wrappedAffixes } of rows) expect(wrappedAffixes.toString("latin1")).not.toMatch(/"[ab]"/);
  const reported: number[] = [];
  const other = deriveKeyRing({ current: Buffer.alloc(32, 2), retired: [] }, "hash-scheme-wrap");
  const node = newNode({ ring: other, onUnusable: (id) => reported.push(id) });
  expect(await prefixesOf(node)).toEqual([]);
  node.state.version = 2;
  expect(await prefixesOf(node)).toEqual([]);
  expect(reported).toHaveLength(2);
  // Not taken for those of the other root secret.
  await node.schemes.schemeId(spec("a"));
  expect(await prefixesOf(node)).toEqual(["a"]);
});

test("secrets are rewrapped under the current root secret, and those of unknown ones are left", async () => {
  const rotated = deriveKeyRing({ current: Buffer.alloc(32, 3), retired: [roots.current] }, "hash-scheme-wrap");
  expect(await rewrapHashSecrets({ store, ring: rotated, random: systemRandom })).toBe(2);
  expect(await rewrapHashSecrets({ store, ring: rotated, random: systemRandom })).toBe(0);
  const alone = deriveKeyRing({ current: Buffer.alloc(32, 3), retired: [] }, "hash-scheme-wrap");
  expect(await prefixesOf(newNode({ ring: alone }))).toEqual(["a", "b"]);
  expect(await prefixesOf(newNode())).toEqual([]);
});

test("texts cannot be moved to another scheme", async () => {
  await pool.run(
    (sql) => sql`
    UPDATE hash_schemes SET slot = 7 WHERE slot = (SELECT min(slot) FROM hash_schemes)`,
  );
  const alone = deriveKeyRing({ current: Buffer.alloc(32, 3), retired: [] }, "hash-scheme-wrap");
  expect(await prefixesOf(newNode({ ring: alone }))).toEqual(["b"]);
});

test("a load in flight, which may have read before a change, is awaited and repeated", async () => {
  const [isRead, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const read = async () => {
    const stored = await store.read();
    isRead.resolve();
    await held.promise;
    return stored;
  };
  const slow = createHashFormats({
    ...{ store: { ...store, read }, ring, random: systemRandom, version: () => 1, renewed: async () => {} },
  });
  const before = slow.lookups();
  await isRead.promise;
  const schemeId = await newNode().schemes.schemeId(spec("added while it is read"));
  const reloaded = slow.reload();
  held.resolve();
  await Promise.all([before, reloaded]);
  expect(slow.lastLookups().schemes.map((scheme) => scheme.schemeId)).toContain(schemeId);
});

import postgres, { type Sql } from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { storedEventJson } from "../../src/api/v2alpha1/audit.ts";
import { bundleOf, entriesOf, splitHashes } from "../../src/audit/tree/entry.ts";
import { hashOf, leafHash } from "../../src/audit/tree/merkle.ts";
import { isSigned, parseCheckpoint, parseVerifierKey } from "../../src/audit/tree/note.ts";
import {
  createTreeKey,
  currentHead,
  integrate,
  readEntries,
  readTile,
  type TreeContext,
} from "../../src/audit/tree/tree.ts";
import { rewrapTreeKey } from "../../src/audit/tree/tree-key.ts";
import { deriveKeyRing, type KeyRing } from "../../src/domain/server-keys.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { createAuditStore } from "../../src/postgres/audit/audit-store.ts";
import { createTreeStore } from "../../src/postgres/audit/tree-store.ts";
import { openSchema } from "./new-keys.ts";

const [OLD, NEW] = ["the first root secret of this test", "the second root secret of this test"].map((text) =>
  Buffer.from(text),
);
const ringOf = (current = OLD ?? Buffer.of(), retired: Buffer[] = []) =>
  deriveKeyRing({ current, retired }, "signing-key-wrap");

interface Fixture {
  readonly owner: Sql;
  /** A server. */
  readonly context: TreeContext;
  /** Records this number of events. */
  record(count: number): Promise<void>;
  contextWith(ring: KeyRing): TreeContext;
}

async function open(): Promise<Fixture> {
  const { ownerUrl, pool } = await openSchema();
  const owner = postgres(ownerUrl, { max: 1, onnotice: () => {} });
  onTestFinished(() => owner.end());
  const events = createAuditStore({ database: pool, lists: pool });
  const store = createTreeStore(pool);
  const contextWith = (ring: KeyRing) => ({ store, events, ring, random: systemRandom, toJson: storedEventJson });
  const record = async (count: number) => {
    await owner`INSERT INTO used_root_secrets (digest_key_id) SELECT gen_random_uuid()::text FROM generate_series(1, ${count})`;
  };
  const context = contextWith(ringOf());
  await createTreeKey(context);
  return { owner, context, record, contextWith };
}

const buffers = (hashes: readonly Uint8Array[]) => hashes.map((hash) => Buffer.from(hash));

/** Returns the entries of the tree of this size, and checks them against its hashes and its checkpoint. */
async function readTree(context: TreeContext): Promise<Uint8Array[]> {
  const { checkpoint, key } = await currentHead(context);
  const verifier = parseVerifierKey(key.verifierKey);
  expect(verifier && isSigned(checkpoint, verifier)).toBe(true);
  const { size = 0, root = Buffer.of() } = parseCheckpoint(checkpoint) ?? {};
  const entries: Uint8Array[] = [];
  for (let index = 0; index * 256 < size; index++) {
    const width = Math.min(size - index * 256, 256);
    const bundle = bundleOf((await readEntries(context, index, width)) ?? []);
    const hashes = splitHashes((await readTile(context, { level: 0, index }, width)) ?? Buffer.of());
    expect(buffers(entriesOf(bundle).map(leafHash))).toEqual(buffers(hashes));
    entries.push(...entriesOf(bundle));
  }
  expect(entries.length).toBe(size);
  expect(Buffer.from(hashOf(entries.map(leafHash)))).toEqual(Buffer.from(root));
  return entries;
}

test("servers that integrate at once make one tree, of which no hash changes when it grows", async () => {
  const { context, record } = await open();
  let before = await readTree(context);
  for (const count of [1, 250, 20, 2_500]) {
    await record(count);
    await context.events.sequence();
    const added = await Promise.all([1, 2, 3].map(async () => (await integrate(context)).added));
    const entries = await readTree(context);
    expect(added.reduce((sum, one) => sum + one, 0)).toBe(entries.length - before.length);
    expect(buffers(entries.slice(0, before.length))).toEqual(buffers(before));
    before = entries;
  }
  expect(JSON.parse(Buffer.from(before[0] ?? []).toString())).toEqual({
    ...{
      seq: 0,
      time: expect.any(String),
      action: "migration.created",
      digest: expect.stringMatching(/^[\da-f]{64}$/),
    },
  });
});

test("one server records the checkpoint each hour, if the log has more than the last of these events", async () => {
  const { context, record, owner } = await open();
  const { checkpoint } = await currentHead(context);
  const recorded = () => Promise.all([1, 2, 3].map(() => context.store.recordCheckpoint()));
  const hourLater = () => owner`UPDATE audit_tree SET record_time = record_time - interval '1 hour'`;
  expect(await recorded()).toEqual([false, false, false]);
  await hourLater();
  expect((await recorded()).filter(Boolean)).toEqual([true]);
  const { size } = await currentHead(context);
  expect(await context.events.read(size - 1, 1)).toMatchObject([
    { action: "audit.checkpoint", before: null, after: { checkpoint }, call: { method: "local" } },
  ]);
  await hourLater();
  expect(await recorded()).toEqual([false, false, false]);
  await record(1);
  await currentHead(context);
  expect((await recorded()).filter(Boolean)).toEqual([true]);
});

test("a server can only append to the tree", async () => {
  const { context, record, owner } = await open();
  await record(300);
  const { size, logSize, checkpoint } = await currentHead(context);
  const hashes = [Buffer.alloc(32)];
  const grow = (from: number, to: number, tiles: { level: number; index: number; hashes: Buffer[] }[]) =>
    context.store.grow({ from, to, tiles, checkpoint: "another" });
  expect(await grow(0, 1, [{ level: 0, index: 0, hashes }])).toBe(false);
  await expect(grow(size, size - 1, [])).rejects.toThrow(`the tree cannot grow from ${size} to ${size - 1} events`);
  await expect(grow(size, logSize + 1, [])).rejects.toThrow("the tree cannot grow");
  await record(1);
  await context.events.sequence();
  // A complete tile, one that would have a gap, one beyond the size, and one of a level that is not there.
  for (const [level, index] of [
    [0, 0],
    [-1, 0],
    [0, 2],
    [1, 0],
    [2, 0],
  ] as const)
    await expect(grow(size, size + 1, [{ level, index, hashes }])).rejects.toThrow("the tiles are not those of a tree");
  expect(await owner`SELECT checkpoint FROM audit_tree`).toEqual([{ checkpoint }]);
  expect((await readTree(context)).length).toBe(size + 1);
});

test("erased events stay in the tree, without their content", async () => {
  const { context, record, owner } = await open();
  await record(300);
  await owner`
    INSERT INTO audit_pending (action, actor_id, call, after) VALUES
      ('key.issued', 'alice', '{"caller": "oidc:bob", "method": "oidc", "subject": "bob"}', '{"name": "of Alice"}'),
      ('key.issued', 'team', '{"caller": "oidc:alice", "method": "oidc", "subject": "alice"}', '{"created_by": "oidc:alice"}'),
      ('key.deleted', 'team', '{"caller": "oidc:bob", "method": "oidc", "subject": "bob"}', '{"created_by": "oidc:alice"}'),
      ('key.issued', 'team', '{"caller": "oidc:bob", "method": "oidc", "subject": "bob"}', '{"restricted_to_actor_ids": ["alice"]}'),
      ('key.issued', 'team', '{"caller": "oidc:bob", "method": "oidc", "subject": "bob"}', '{"name": "of others"}')`;
  const before = await readTree(context);
  const erase = async (subject: string, id: string) => {
    const [row] = await owner`SELECT audit_erase(${subject}, ${id})::int AS erased`;
    return row?.erased;
  };
  expect([await erase("actor", "alice"), await erase("caller", "oidc:alice")]).toEqual([2, 2]);
  expect([await erase("actor", "alice"), await erase("key", "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10")]).toEqual([0, 0]);
  await expect(erase("person", "alice")).rejects.toThrow('unknown subject "person"; allowed: actor, caller, key');
  const entries = await readTree(context);
  expect(buffers(entries.slice(0, before.length))).toEqual(buffers(before));
  const events = await context.events.read(0, 1_000);
  expect(JSON.stringify(events)).not.toMatch(/alice/i);
  expect(events.filter(({ salt }) => salt === null).map(storedEventJson)).toEqual(
    ["key.issued", "key.issued", "key.deleted", "key.issued"].map((action) => ({
      ...{ seq: expect.any(String), time: expect.any(String), action },
    })),
  );
  expect(events.slice(-2)).toMatchObject([
    { action: "audit.erased", after: { count: 2, subject: "actor" } },
    { action: "audit.erased", after: { count: 2, subject: "caller" } },
  ]);
});

test("a pruned log keeps its hashes", async () => {
  const { context, record, owner } = await open();
  await record(600);
  const { size } = await currentHead(context);
  await owner`SELECT audit_prune(now() + interval '1 hour')`;
  expect(await readEntries(context, 1, 256)).toBeNull();
  expect((await readEntries(context, 2, size - 512))?.length).toBe(size - 512);
  expect((await readTile(context, { level: 0, index: 0 }, 256))?.length).toBe(8_192);
  expect((await currentHead(context)).size).toBe(size + 1);
});

test("an event that is lost before the tree has it stops the tree", async () => {
  const { context, record, owner } = await open();
  await record(3);
  const { size } = await currentHead(context);
  await record(3);
  await context.events.sequence();
  await owner`DELETE FROM audit_events WHERE seq = ${size + 1}`;
  await expect(integrate(context)).rejects.toThrow(`the audit log has lost event ${size + 1} before the tree had it`);
  await owner`DELETE FROM audit_events WHERE seq >= ${size}`;
  await expect(integrate(context)).rejects.toThrow(`the audit log has lost event ${size} before the tree had it`);
  expect((await context.store.head()).size).toBe(size);
});

test("the key of the log is rewrapped, and a deleted one is replaced", async () => {
  const { context, contextWith, record, owner } = await open();
  const { key } = await currentHead(context);
  const both = contextWith(ringOf(NEW, [OLD ?? Buffer.of()]));
  expect([await rewrapTreeKey(both), await rewrapTreeKey(both)]).toEqual([1, 0]);
  expect((await currentHead(contextWith(ringOf(NEW)))).key.verifierKey).toBe(key.verifierKey);
  await record(1);
  await expect(currentHead(context)).rejects.toThrow(
    /^the audit log key keyhold\/\S+ cannot be unwrapped: it was not wrapped with any configured/,
  );
  await owner`DELETE FROM audit_tree_key`;
  const replaced = await currentHead(context);
  expect(replaced.key.verifierKey).not.toBe(key.verifierKey);
  expect(replaced.key.verifierKey.split("+")[0]).toBe(key.verifierKey.split("+")[0]);
  await readTree(context);
  const actions = (await context.events.read(0, 100))
    .map(({ action }) => action)
    .filter((action) => action.startsWith("audit"));
  expect(actions).toEqual(["created", "rewrapped", "deleted", "created"].map((verb) => `audit_tree_key.${verb}`));
});

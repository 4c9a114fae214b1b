import { expect, test } from "vitest";
import type { KeyLookup } from "../../../src/domain/key-lookup.ts";
import { KeyLoader } from "../../../src/verify/cache/key-loader.ts";
import { nextTurn, TestStore } from "../store.ts";

const byId = (keyId: string): KeyLookup => ({ keyId, digests: [] });
const byDigest = (digest: string): KeyLookup => ({ keyId: null, digests: [Buffer.from(digest)] });

function newReads() {
  const store = new TestStore();
  store.isHolding = true;
  const kept: KeyLookup[] = [];
  return { store, kept, reads: new KeyLoader(store.findKeys, (lookup) => kept.push(lookup)) };
}

test("look-ups in one tick of the event loop share one statement, equal ones once", async () => {
  const { store, reads, kept } = newReads();
  const lookups = [byId("a"), byId("b"), byDigest("c"), byId("a"), byDigest("c")];
  const answers = Promise.all(lookups.map((lookup) => reads.read(lookup, "default")));
  expect(store.statements).toEqual([]);
  await nextTurn();
  expect(store.statements).toEqual([lookups.slice(0, 3)]);
  store.held[0]?.release();
  expect(await answers).toEqual(lookups.map(() => null));
  expect(kept).toEqual(lookups.slice(0, 3));
});

test("while two statements are in flight, all other look-ups wait and share the next", async () => {
  const { store, reads } = newReads();
  const answers = [];
  for (let i = 0; i < 10; i++) {
    answers.push(reads.read(byId(`key ${i}`), "default"));
    await nextTurn();
  }
  expect(store.statements.map(({ length }) => length)).toEqual([1, 1]);
  store.held[1]?.release();
  await nextTurn();
  expect(store.statements.map(({ length }) => length)).toEqual([1, 1, 8]);
  for (const statement of [...store.held]) statement.release();
  await Promise.all(answers);
});

test("a statement has at most 1000 look-ups", async () => {
  const { store, reads } = newReads();
  const answers = Promise.all(Array.from({ length: 2500 }, (_, i) => reads.read(byId(`key ${i}`), "default")));
  await nextTurn();
  await nextTurn();
  expect(store.statements.map(({ length }) => length)).toEqual([1000, 1000]);
  store.held[0]?.release();
  await nextTurn();
  expect(store.statements.map(({ length }) => length)).toEqual([1000, 1000, 500]);
  for (const statement of [...store.held]) statement.release();
  expect((await answers).length).toBe(2500);
});

test("at most 10,000 look-ups may be queued, without those that coalesce", async () => {
  const { store, reads } = newReads();
  const sent = [reads.read(byId("a"), "default")];
  await nextTurn();
  sent.push(reads.read(byId("b"), "default"));
  await nextTurn();
  const waiting = Array.from({ length: 10_000 }, (_, i) => reads.read(byId(`key ${i}`), "default"));
  await expect(reads.read(byId("one more"), "default")).rejects.toMatchObject({ code: "OVERLOADED" });
  await expect(reads.read(byId("a"), "no-cache")).rejects.toMatchObject({ code: "OVERLOADED" });
  waiting.push(reads.read(byId("key 0"), "no-cache"), reads.read(byId("a"), "default"));
  store.isHolding = false;
  for (const statement of [...store.held]) statement.release();
  expect(await Promise.all([...sent, ...waiting])).toHaveLength(10_004);
});

test("a failed statement rejects only its own look-ups", async () => {
  const { store, reads, kept } = newReads();
  const failing = [
    reads.read(byId("a"), "default"),
    reads.read(byId("a"), "default"),
    reads.read(byId("b"), "no-cache"),
  ];
  const settled = Promise.allSettled(failing);
  await nextTurn();
  const other = reads.read(byId("c"), "default");
  await nextTurn();
  store.held[0]?.fail(new Error("away"));
  expect((await settled).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  const again = reads.read(byId("a"), "default");
  await nextTurn();
  for (const statement of [...store.held]) statement.release();
  expect(await Promise.all([other, again])).toEqual([null, null]);
  expect(kept).toEqual([byId("c"), byId("a")]);
});

test("the default coalesces with an in-flight read, and no-cache and no-store only with a queued one", async () => {
  const { store, reads } = newReads();
  const answers = [reads.read(byId("a"), "default")];
  await nextTurn();
  answers.push(reads.read(byId("a"), "default"));
  await nextTurn();
  expect(store.statements.length).toBe(1);
  answers.push(reads.read(byId("a"), "no-cache"), reads.read(byId("a"), "no-store"), reads.read(byId("a"), "default"));
  await nextTurn();
  expect(store.statements.map(({ length }) => length)).toEqual([1, 1]);
  for (const statement of [...store.held]) statement.release();
  await Promise.all(answers);
});

test("with no-store, equal queued look-ups coalesce", async () => {
  const { store, reads } = newReads();
  store.isHolding = false;
  await Promise.all([reads.read(byId("a"), "no-store"), reads.read(byId("a"), "no-store")]);
  expect(store.statements).toEqual([[byId("a")]]);
});

test("a result that only no-store requested is not cached, and a shared one is", async () => {
  const { store, reads, kept } = newReads();
  store.isHolding = false;
  await reads.read(byId("a"), "no-store");
  expect(kept).toEqual([]);
  await Promise.all([reads.read(byId("b"), "default"), reads.read(byId("b"), "no-store")]);
  expect(kept).toEqual([byId("b")]);
});

test("an older read does not overwrite the result of a newer one", async () => {
  const { store, reads, kept } = newReads();
  const older = reads.read(byId("a"), "default");
  await nextTurn();
  const fresh = reads.read(byId("a"), "no-cache");
  await nextTurn();
  store.held[1]?.release();
  await fresh;
  store.held[0]?.release();
  await older;
  expect(kept).toEqual([byId("a")]);
});

test("a look-up without candidates causes no read", async () => {
  const { store, reads } = newReads();
  expect(await reads.read({ keyId: null, digests: [] }, "default")).toBeNull();
  expect(store.statements).toEqual([]);
});

import { afterEach, expect, test, vi } from "vitest";
import { fullAuthority } from "../../src/keys/authority.ts";
import type { KeyName } from "../../src/keys/store.ts";
import { createKeyStore } from "../../src/postgres/key-store.ts";
import { type Database, Pool } from "../../src/postgres/pool.ts";
import type { KeyChange } from "../../src/verify/reader.ts";
import { UNKNOWN_KEY_ID } from "../support/conformance.ts";
import { newKey, openSchema } from "./new-keys.ts";

afterEach(() => void vi.useRealTimers());

test("a change whose answer did not come is told of at once, and again when it is surely committed or not", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const nowhere = { url: "postgres://nobody@127.0.0.1:1/none", maxConnections: 1, statementTimeout: 1, prepare: true };
  const database = new Pool(nowhere, 1000);
  const told: KeyChange[] = [];
  const store = createKeyStore({ changes: database, reads: database, lists: database }, (change) => told.push(change));
  const revocation = { reason: "REVOCATION_REASON_SUPERSEDED", description: null } as const;
  const name = { keyId: UNKNOWN_KEY_ID, kind: null };
  const outcome = store.revoke(name, revocation, fullAuthority, new Date(0)).catch((error) => error);
  await vi.advanceTimersByTimeAsync(2000);
  expect(await outcome).toMatchObject({ code: "DATABASE_UNAVAILABLE" });
  const change = { keyIds: [UNKNOWN_KEY_ID], digests: [] };
  expect(told).toEqual([change]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(told).toEqual([change, change]);
});

test("of new keys the digests of raw keys are told of, all under which they may have been looked for, and nothing else", async () => {
  const { pool } = await openSchema();
  const told: KeyChange[] = [];
  const store = createKeyStore({ changes: pool, reads: pool, lists: pool }, (change) => told.push(change));
  const [issued, imported] = [newKey({ kind: "issued" }), newKey({ retiredDigests: [Buffer.alloc(32, 7)] })];
  await store.insert([issued]);
  await store.insert([issued, imported]);
  expect(told).toEqual([
    { keyIds: [], digests: [] },
    { keyIds: [], digests: [imported.digest.digest, Buffer.alloc(32, 7)] },
  ]);
});

test("keys that are read at the same time are read by one statement, each as it is and of its kind", async () => {
  const { pool } = await openSchema();
  let statements = 0;
  const counted: Database = {
    run(work) {
      statements++;
      return pool.run(work);
    },
  };
  const store = createKeyStore({ changes: pool, reads: counted, lists: pool }, () => {});
  const [issued, imported] = [newKey({ kind: "issued" }), newKey({})];
  const [first, second] = [issued.key, imported.key];
  await store.insert([issued, imported]);
  const names: readonly KeyName[] = [
    { keyId: first.keyId, kind: "issued" },
    { keyId: second.keyId, kind: "issued" },
    { keyId: UNKNOWN_KEY_ID, kind: null },
    { keyId: second.keyId, kind: null },
    { keyId: first.keyId, kind: null },
  ];
  const before = statements;
  const found = await Promise.all(names.map((name) => store.get(name)));
  expect(found.map((stored) => stored?.key)).toEqual([first, undefined, undefined, second, first]);
  expect(statements - before).toBe(1);
});

import { expect, test } from "vitest";
import type { Propagation } from "../../src/cluster/propagation.ts";
import type { Change } from "../../src/domain/change.ts";
import type { KeyMutation, KeyName } from "../../src/keys/ports.ts";
import { invalidating, observed, propagating } from "../../src/postgres/cluster/change-committer.ts";
import { type Database, Pool } from "../../src/postgres/connection/pool.ts";
import { createKeyStore } from "../../src/postgres/key-store.ts";
import type { KeyChange } from "../../src/verify/reader.ts";
import { UNKNOWN_KEY_ID } from "../support/conformance.ts";
import { operator } from "../support/principal.ts";
import { newKey, openSchema } from "./new-keys.ts";

/** A change propagation that records its calls. */
function listening() {
  const told: (KeyChange | "begin" | "confirm")[] = [];
  const changed = (change: KeyChange) => void told.push(change);
  const committing = (database: Database) => invalidating(propagating(database, propagation), changed);
  const propagation: Propagation = {
    begin: async (send) => {
      told.push("begin");
      await send(null);
      return { history: "", done: null };
    },
    confirm: async () => void told.push("confirm"),
    isAcknowledgedByAll: () => true,
  };
  return { told, committing };
}

test("a change with a lost response is propagated without another read", async () => {
  const nowhere = { url: "postgres://nobody@127.0.0.1:1/none", maxConnections: 1, statementTimeout: 1, prepare: true };
  const database = new Pool({ ...nowhere, answerTimeout: 100 });
  const { told, committing } = listening();
  const store = createKeyStore({ reads: database, lists: database }, committing(database));
  const revocation = { verb: "revoke", reason: "SUPERSEDED", description: null } as const;
  const name = { keyId: UNKNOWN_KEY_ID, kind: null };
  const outcome = store.change(name, revocation, operator, new Date(0));
  await expect(outcome).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
  expect(told).toEqual([{ keyIds: [UNKNOWN_KEY_ID], digests: [] }]);
});

test("new keys propagate only the digests of their raw keys, under every root secret", async () => {
  const { pool } = await openSchema();
  const { told, committing } = listening();
  const store = createKeyStore({ reads: pool, lists: pool }, committing(pool));
  const [issued, imported] = [newKey({ kind: "issued" }), newKey({ otherDigests: [Buffer.alloc(32, 7)] })];
  await store.insert([issued]);
  await store.insert([issued, imported]);
  expect(told).toEqual([
    { keyIds: [], digests: [] },
    "begin",
    "confirm",
    { keyIds: [], digests: [imported.digest.digest, Buffer.alloc(32, 7)] },
  ]);
});

test("a change is propagated whether it succeeded or was refused, and a failed propagation is not lost", async () => {
  const { pool } = await openSchema();
  const { told, committing } = listening();
  const store = createKeyStore({ reads: pool, lists: pool }, committing(pool));
  const { key } = newKey({ kind: "issued" });
  await store.insert([{ ...newKey({ kind: "issued" }), key }]);
  const name = { keyId: key.keyId, kind: null };
  const revocation = { verb: "revoke", reason: "SUPERSEDED", description: null } as const;
  expect(await store.change(name, revocation, operator, new Date())).not.toBeNull();
  expect(await store.change(name, revocation, operator, new Date())).toBeNull();
  const change = { keyIds: [key.keyId], digests: [] };
  expect(told.slice(1)).toEqual(["begin", "confirm", change, "begin", "confirm", change]);
});

test("a repeated disabling or enabling returns the key unchanged, after a barrier, and is no change", async () => {
  const { pool } = await openSchema();
  const { told, committing } = listening();
  const verbs: string[] = [];
  const commit = observed(committing(pool), (changes) => verbs.push(...changes.map(({ verb }) => verb)));
  const store = createKeyStore({ reads: pool, lists: pool }, commit);
  const added = newKey({ kind: "issued" });
  await store.insert([added]);
  const { keyId } = added.key;
  const name = { keyId, kind: null };
  told.length = verbs.length = 0;
  const first = await store.change(
    name,
    { verb: "disable", reason: "first" },
    operator,
    new Date("2026-02-01T00:00:00Z"),
  );
  expect(first).toMatchObject({
    disableTime: new Date("2026-02-01T00:00:00Z"),
    disableReason: "first",
    disabledBy: "local:test",
  });
  expect(
    await store.change(name, { verb: "disable", reason: "second" }, operator, new Date("2026-02-02T00:00:00Z")),
  ).toEqual(first);
  const enabled = await store.change(name, { verb: "enable" }, operator, new Date("2026-02-03T00:00:00Z"));
  const none = { disableTime: null, disableReason: null, disabledBy: null };
  expect(enabled).toEqual({ ...first, ...none, updateTime: enabled?.updateTime });
  expect(await store.change(name, { verb: "enable" }, operator, new Date("2026-02-04T00:00:00Z"))).toEqual(enabled);
  expect(told).toEqual(
    Array(4)
      .fill(["begin", "confirm", { keyIds: [keyId], digests: [] }])
      .flat(),
  );
  expect(verbs).toEqual(["disable", "enable"]);
});

test("concurrent reads of keys share one statement, and each returns its own key and kind", async () => {
  const { pool } = await openSchema();
  let statements = 0;
  const counted: Database = {
    run(work) {
      statements++;
      return pool.run(work);
    },
  };
  const store = createKeyStore({ reads: counted, lists: pool }, listening().committing(pool));
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

test("each change returns the key as it is stored, before and after", async () => {
  const { pool } = await openSchema();
  const changes: Change[] = [];
  const commit = observed(listening().committing(pool), (made) => changes.push(...made));
  const store = createKeyStore({ reads: pool, lists: pool }, commit);
  const added = newKey({ kind: "issued" });
  const name = { keyId: added.key.keyId, kind: null };
  await store.insert([added]);
  changes.length = 0;
  const expiry = { time: new Date("2100-01-01T00:00:00.000Z"), maxKeyTtl: null };
  const fields = { name: "new", scopes: ["new"], metadata: { new: "1" }, allowedCidrs: ["10.0.0.0/8"], expiry };
  const digest = { keyId: "k2", digest: Buffer.alloc(32, 1) };
  const mutations: readonly KeyMutation[] = [
    { verb: "update", ...fields },
    { verb: "update", name: "newer" },
    { verb: "rotate", version: 2, digest, hint: "new", graceEnd: expiry.time },
    { verb: "disable", reason: "r" },
    { verb: "enable" },
    { verb: "revoke", reason: "SUPERSEDED", description: "d" },
  ];
  for (const [place, mutation] of mutations.entries()) {
    const before = (await store.get(name))?.key;
    const changed = await store.change(name, mutation, operator, new Date(Date.now() + place));
    const after = (await store.get(name))?.key;
    expect(changed).toEqual(after);
    expect(after).not.toEqual(before);
    expect(changes.splice(0)).toMatchObject([{ verb: mutation.verb, before, after }]);
  }
  const last = (await store.get(name))?.key;
  expect(await store.change(name, { verb: "delete" }, operator, new Date())).toEqual(last);
  expect(changes).toMatchObject([{ verb: "delete", before: last, after: null }]);
});

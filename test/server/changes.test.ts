import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Change } from "../../src/domain/change.ts";
import { localOperator, type Principal } from "../../src/domain/principal.ts";
import { changeMany } from "../../src/keys/bulk.ts";
import { deleteImportedKey } from "../../src/keys/delete.ts";
import { revokeWithDescendants } from "../../src/keys/descendants.ts";
import { importKey, importKeys, parseNewImport } from "../../src/keys/import.ts";
import { issueKey, parseNewIssue } from "../../src/keys/issue.ts";
import type { BulkChange } from "../../src/keys/ports.ts";
import { getKey } from "../../src/keys/read.ts";
import { revokeKey } from "../../src/keys/revoke.ts";
import { rotateKey } from "../../src/keys/rotate.ts";
import { updateKey } from "../../src/keys/update.ts";
import { toConfig } from "../../src/server/config/config.ts";
import { openResources, type Resources } from "../../src/server/resources.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { ROOT_SECRET } from "../support/server.ts";

const alice = localOperator("alice", "call-1");
const bob = localOperator("bob", "call-2");
/** A principal that may not manage keys with a Keyhold scope. */
const limited: Principal = { ...bob, scopes: ["keyhold:verify"] };
const revocation = { reason: "SUPERSEDED", description: null } as const;

let database: TestDatabase;
let resources: Resources;
/** The changes that the observer has received since the test began, in commit order. */
let seen: (readonly Change[])[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  const config = toConfig({ KEYHOLD_DATABASE_URL: database.url, KEYHOLD_ROOT_SECRET: ROOT_SECRET });
  resources = await openResources(config, { log: () => {}, onChanges: (changes) => seen.push(changes) });
  await resources.coherence.membership.join();
});

afterAll(async () => {
  await resources.close();
  await database.drop();
});

beforeEach(() => {
  seen = [];
});

const input = (name: string, more: { scopes?: readonly string[]; requestId?: string } = {}) => ({
  ...{ name, actorId: "actor_1", scopes: more.scopes ?? ["orders:read"], metadata: { team: "payments" } },
  ...(more.requestId === undefined ? {} : { requestId: more.requestId }),
});

const issue = async (principal = alice, more = {}) =>
  issueKey(resources.keys, principal, parseNewIssue(resources.keys, input("key", more)));
const raw = (name: string, more = {}) =>
  parseNewImport(resources.keys, { ...input(name), rawKey: `raw-${randomUUID()}`, ...more });

test("an observer sees each verb's change once, with the key before and after it, and who made it", async () => {
  const { keys } = resources;
  const { key: issued } = await issue();
  const name = { keyId: issued.keyId, kind: "issued" } as const;
  const updated = await updateKey(keys, bob, name, { name: "renamed", metadata: {} });
  const { key: rotated } = await rotateKey(keys, alice, { keyId: issued.keyId, grace: null });
  const revoked = await revokeKey(keys, bob, name, revocation);
  const imported = await importKey(keys, alice, raw("imported"));
  await deleteImportedKey(keys, bob, imported.keyId);
  expect(seen).toEqual([
    [{ verb: "issue", key: issued, before: null, after: issued, principal: alice }],
    [{ verb: "update", key: updated, before: issued, after: updated, principal: bob }],
    [{ verb: "rotate", key: rotated, before: updated, after: rotated, principal: alice }],
    [{ verb: "revoke", key: revoked, before: rotated, after: revoked, principal: bob }],
    [{ verb: "import", key: imported, before: null, after: imported, principal: alice }],
    [{ verb: "delete", key: imported, before: imported, after: null, principal: bob }],
  ]);
});

test("an observer sees one change for each key of a bulk change, and each descendant", async () => {
  const { keys } = resources;
  const root = await issue(alice, { scopes: ["keyhold:admin"] });
  const token: Principal = { ...alice, method: "admin-token", subject: root.key.keyId, keyId: root.key.keyId };
  const descendants = [(await issue(token)).key, await importKey(keys, token, raw("descendant"))];
  const actorId = randomUUID();
  const members = [1, 2].map((place) => importKey(keys, alice, raw(`member ${place}`, { actorId })));
  const before = new Map([...(await Promise.all(members)), ...descendants, root.key].map((key) => [key.keyId, key]));
  /** Makes a change of keys, and expects it to be seen once for each, with the key before and after it. */
  const expectSeen = async (verb: Change["verb"], keyIds: readonly string[], change: () => Promise<unknown>) => {
    seen = [];
    await change();
    const changes = seen.flat();
    expect(changes.map(({ key }) => key.keyId).sort()).toEqual([...keyIds].sort());
    for (const change of changes) {
      const { keyId, kind } = change.key;
      const after = await getKey(keys, alice, kind, keyId);
      expect(after[verb === "revoke" ? "revokeTime" : "disableTime"]).not.toBeNull();
      expect(change).toEqual({ verb, key: after, before: before.get(keyId), after, principal: bob });
      before.set(keyId, after);
    }
  };
  const control = { mayContinue: () => true, onChanged: () => {} };
  const changeAll = (change: BulkChange) => async () => {
    const request = { filter: `actor_id="${actorId}"`, change, validateOnly: false };
    await changeMany(keys, bob, request, control);
  };
  const memberIds = (await Promise.all(members)).map(({ keyId }) => keyId);
  await expectSeen("disable", memberIds, changeAll({ verb: "disable", reason: "unpaid" }));
  await expectSeen("revoke", memberIds, changeAll({ verb: "revoke", ...revocation }));
  const familyIds = [root.key, ...descendants].map(({ keyId }) => keyId);
  const name = { keyId: root.key.keyId, kind: null };
  await expectSeen("revoke", familyIds, () => revokeWithDescendants(keys, bob, name, revocation, control));
});

test("a batch import reports one change for each stored key, and none for the others", async () => {
  const [known, fresh] = [raw("known"), raw("fresh")];
  await importKey(resources.keys, alice, known);
  seen = [];
  const many = Array.from({ length: 150 }, (_, place) => raw(`many ${place}`));
  const results = await importKeys(resources.keys, bob, [known, fresh, fresh, ...many]);
  const stored = results.filter((result) => "keyId" in result);
  expect(stored).toHaveLength(151);
  const changes = seen.flat();
  expect(changes.map(({ after }) => after)).toEqual(stored);
  expect(
    changes.every(({ verb, before, principal }) => verb === "import" && before === null && principal === bob),
  ).toBe(true);
});

test("changes of callers whose keys are stored together have the principal of their caller", async () => {
  const callers = Array.from({ length: 20 }, (_, place) => localOperator(`caller ${place}`, `call ${place}`));
  const issued = await Promise.all(callers.map((caller) => issue(caller)));
  expect(seen.length).toBeLessThan(20);
  const bySubject = new Map(seen.flat().map(({ principal, key }) => [principal.subject, key.keyId]));
  expect(issued.map(({ key }) => key.keyId)).toEqual(callers.map(({ subject }) => bySubject.get(subject)));
});

test("an observer sees no retries, rejected changes or failures", async () => {
  const { keys } = resources;
  const requestId = randomUUID();
  const { key } = await issue(alice, { requestId, scopes: ["keyhold:admin"] });
  const name = { keyId: key.keyId, kind: "issued" } as const;
  const input = raw("imported");
  await importKey(keys, alice, input);
  seen = [];
  expect((await issue(alice, { requestId, scopes: ["keyhold:admin"] })).key).toEqual(key);
  await expect(issue(alice, { requestId, scopes: [] })).rejects.toMatchObject({ code: "REQUEST_ID_REUSED" });
  await expect(importKey(keys, alice, input)).rejects.toMatchObject({ code: "RAW_KEY_ALREADY_EXISTS" });
  await expect(updateKey(keys, limited, name, { name: "mine" })).rejects.toMatchObject({
    code: "CALLER_NOT_PERMITTED",
  });
  await expect(revokeKey(keys, limited, name, revocation)).rejects.toMatchObject({ code: "CALLER_NOT_PERMITTED" });
  await expect(deleteImportedKey(keys, alice, key.keyId)).rejects.toMatchObject({ code: "API_KEY_NOT_FOUND" });
  expect(seen).toEqual([]);
  await revokeKey(keys, alice, name, revocation);
  await expect(revokeKey(keys, bob, name, revocation)).rejects.toMatchObject({ code: "API_KEY_ALREADY_REVOKED" });
  await expect(rotateKey(keys, bob, { keyId: key.keyId, grace: null })).rejects.toMatchObject({
    code: "API_KEY_REVOKED",
  });
  expect(seen).toHaveLength(1);
});

test("each of several concurrent changes of one key has the result of the previous one as its state before", async () => {
  const { keys } = resources;
  const { key } = await issue();
  const name = { keyId: key.keyId, kind: "issued" } as const;
  seen = [];
  const names = Array.from({ length: 20 }, (_, place) => `name ${place}`);
  await Promise.all(names.map((value) => updateKey(keys, alice, name, { name: value })));
  const changes = seen.flat();
  expect(changes.map(({ after }) => after?.name).sort()).toEqual([...names].sort());
  // Each state but the last is the previous state of exactly one other change.
  const before = changes.map((change) => change.before?.name);
  const last = await getKey(keys, alice, "issued", key.keyId);
  expect([...before, last.name].sort()).toEqual([key.name, ...names].sort());
});

test("one of several concurrent revocations is executed", async () => {
  const { key } = await issue();
  seen = [];
  const name = { keyId: key.keyId, kind: null };
  await Promise.allSettled(Array.from({ length: 10 }, () => revokeKey(resources.keys, alice, name, revocation)));
  expect(seen.flat()).toMatchObject([{ verb: "revoke", before: { revokeTime: null } }]);
});

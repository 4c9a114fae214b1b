import { randomUUID } from "node:crypto";
import postgres from "postgres";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Principal } from "../../src/domain/principal.ts";
import { changeMany } from "../../src/keys/bulk.ts";
import { revokeWithDescendants } from "../../src/keys/descendants.ts";
import type { BulkStore, KeysContext } from "../../src/keys/ports.ts";
import { paceAt } from "../../src/keys/time-box.ts";
import { withTimeout } from "../../src/lib/with-timeout.ts";
import { toConfig } from "../../src/server/config/config.ts";
import { openResources } from "../../src/server/resources.ts";
import { revoke, succeeded, table } from "../support/conformance.ts";
import { useGuardedService } from "../support/guarded.ts";
import { eventually } from "../support/keyhold.ts";
import { addDescendants } from "../support/lineage.ts";
import { isAwaited, lockRow } from "../support/locked-row.ts";
import { operator } from "../support/principal.ts";
import { type Answer, issue, paths, type RestClient } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";

/** Calls that change many keys in slices, and what changes between two slices. */

const suite = useGuardedService();
const { rest } = suite;

/** One full slice, and a second one. */
const COUNT = paceAt(0).slice + 10;

/** Milliseconds after which a call changes no more keys. On a slow machine, these may not be all. */
const LONGEST_WORK = 6_000;

/** Stores keys as children of a new admin token. */
async function newFamily() {
  const actor = randomUUID();
  const { keyId: root } = await issue(rest, { actor_id: actor, scopes: ["keyhold:keys.write"] });
  const newest = await addDescendants(suite.sql, root, COUNT, "star");
  const [highest] = await suite.sql`
    SELECT key_id::text FROM api_keys WHERE actor_id = ${actor} AND key_id <> ${root} ORDER BY uuid_send(key_id) DESC LIMIT 1`;
  return {
    root,
    newest,
    highest: highest?.key_id,
    filter: `actor_id="${actor}" AND create_time < now() AND key_id!="${root}"`,
  };
}

type Family = Awaited<ReturnType<typeof newFamily>>;

async function changedOf({ root }: Family): Promise<number> {
  const [row] = await suite.sql`
    SELECT count(*)::integer AS count FROM api_keys
    WHERE created_by = ${`admin-token:${root}`} AND (revoke_time IS NOT NULL OR disable_time IS NOT NULL)`;
  return row?.count;
}

interface Sliced {
  readonly call: (caller: RestClient, family: Family) => Promise<Answer>;
  /** A key of the second slice. */
  readonly second: (family: Family) => string;
}

/** Repeats a call until it is done or refused: a slow process may need more than one. Returns the last answer, with the sum of the counts. */
async function untilDone(count: "changed_count" | "descendant_count", call: () => Promise<Answer>): Promise<Answer> {
  for (let sum = 0; ; ) {
    const answer = await call();
    if (answer.status !== 200) return answer;
    sum += answer.body[count];
    if (answer.body.done) return { ...answer, body: { ...answer.body, [count]: sum } };
  }
}

const bulk = (verb: string): Sliced => ({
  call: (caller, { filter }) => untilDone("changed_count", () => caller("POST", `${paths.keys}:${verb}`, { filter })),
  second: ({ highest }) => highest,
});
const DESCENDANTS: Sliced = {
  call: (caller, { root }) =>
    untilDone("descendant_count", () => caller("POST", `${paths.keys}/${root}:revoke`, { include_descendants: true })),
  second: ({ newest }) => newest,
};

const revoked = (keyId: string) => revoke(rest, keyId);
const issued = (keyId: string) => `${paths.issued}/${keyId}`;

/** Calls that work in slices, and how their caller loses its rights meanwhile. */
const LOSSES: readonly (readonly [title: string, sliced: Sliced, lose: (keyId: string) => Promise<unknown>])[] = [
  ["bulkRevoke, by a caller that is revoked", bulk("bulkRevoke"), revoked],
  ["bulkDisable, by a caller that is revoked", bulk("bulkDisable"), revoked],
  ["a revocation with descendants, by a caller that is revoked", DESCENDANTS, revoked],
  [
    "bulkRevoke, by a caller that is disabled",
    bulk("bulkRevoke"),
    async (keyId) => succeeded(await rest("POST", `${paths.keys}/${keyId}:disable`, {})),
  ],
  [
    "bulkRevoke, by a caller that has expired",
    bulk("bulkRevoke"),
    (keyId) => suite.sql`UPDATE api_keys SET expire_time = now() - interval '1 h' WHERE key_id = ${keyId}`,
  ],
  [
    "bulkRevoke, by a caller whose secret is rotated",
    bulk("bulkRevoke"),
    async (keyId) => succeeded(await rest("POST", `${issued(keyId)}:rotate`, {})),
  ],
  [
    "bulkRevoke, by a caller that loses its scope",
    bulk("bulkRevoke"),
    async (keyId) => succeeded(await rest("PATCH", issued(keyId), { scopes: ["read"] })),
  ],
];

/** Runs the call by a new admin token, and `meanwhile` when its second slice has begun. */
async function duringSecondSlice({ call, second }: Sliced, meanwhile: (keyId: string) => Promise<unknown>) {
  const family = await newFamily();
  const caller = await issue(rest, { scopes: ["keyhold:admin"] });
  const sql = postgres(suite.server.ownerUrl, { max: 2 });
  onTestFinished(() => sql.end());
  const held = await lockRow(sql, second(family));
  const answer = call(suite.as(caller.secret), family);
  await eventually(() => isAwaited(sql));
  // A busy process has smaller slices.
  const before = await changedOf(family);
  await meanwhile(caller.keyId);
  await held.release();
  return { answer: await answer, family, before };
}

test.each(table(LOSSES))("%s, ends without another change", async (_, sliced, lose) => {
  const { answer, family, before } = await duringSecondSlice(sliced, lose);
  expect([answer.status, answer.body.error?.details[0].reason]).toEqual([401, "CALLER_UNAUTHENTICATED"]);
  expect(before).toBeGreaterThan(0);
  expect(before).toBeLessThan(COUNT);
  expect(await changedOf(family)).toBe(before);
});

test("a call continues with a secret in its grace period", async () => {
  const { answer, family } = await duringSecondSlice(bulk("bulkRevoke"), async (keyId) =>
    succeeded(await rest("POST", `${issued(keyId)}:rotate`, { grace_period: "1h" })),
  );
  expect(succeeded(answer)).toMatchObject({ changed_count: COUNT, done: true });
  expect(await changedOf(family)).toBe(COUNT);
});

test("a token that revokes itself with its descendants, or is one of them, completes the call", async () => {
  const { root, secret } = await issue(rest, { scopes: ["keyhold:admin"] }).then(async ({ keyId, secret }) => {
    await addDescendants(suite.sql, keyId, COUNT, "star");
    return { root: keyId, secret };
  });
  const child = await issue(suite.as(secret), { scopes: ["keyhold:admin"] });
  const grandchild = await issue(suite.as(child.secret), { scopes: ["keyhold:admin"] });
  const family = { root: child.keyId } as Family;
  await addDescendants(suite.sql, child.keyId, COUNT, "star");
  const byDescendant = succeeded(await DESCENDANTS.call(suite.as(grandchild.secret), family));
  expect(byDescendant).toMatchObject({ descendant_count: COUNT + 1, remaining_descendant_count: 0, done: true });
  const byItself = succeeded(await DESCENDANTS.call(suite.as(secret), { ...family, root }));
  expect(byItself).toMatchObject({ descendant_count: COUNT, remaining_descendant_count: 0, done: true });
});

describe("a slice", () => {
  test("changes no key that got rights beyond its caller's while it waited", async () => {
    const family = await newFamily();
    const { secret } = await issue(rest, { scopes: ["keyhold:keys.write"] });
    const sql = postgres(suite.server.ownerUrl, { max: 2 });
    onTestFinished(() => sql.end());
    const answer = await sql.begin(async (tx) => {
      await tx`UPDATE api_keys SET scopes = '{keyhold:admin}' WHERE key_id = ${family.newest}`;
      const answer = DESCENDANTS.call(suite.as(secret), family);
      await eventually(() => isAwaited(sql));
      return { answer };
    });
    expect(succeeded(await answer.answer)).toMatchObject({
      ...{ descendant_count: COUNT - 1, remaining_descendant_count: 1, done: true },
    });
  });
});

describe("an operation", () => {
  let keys: KeysContext;
  beforeAll(async () => {
    const environment = { KEYHOLD_DATABASE_URL: suite.server.ownerUrl, KEYHOLD_ROOT_SECRET: ROOT_SECRET };
    const resources = await openResources(toConfig(environment), { log: () => {} });
    keys = resources.keys;
    return () => resources.close();
  });
  const control = { mayContinue: () => true, onChanged: () => {} };
  const change = { verb: "revoke", reason: "UNSPECIFIED", description: null } as const;
  const run = (principal: Principal, filter: string, requestId: string, bulk: BulkStore = keys.bulk) =>
    changeMany({ ...keys, bulk }, principal, { filter, change, validateOnly: false, requestId }, control);

  test("of a caller whose access token has expired changes nothing", async () => {
    const family = await newFamily();
    const expired = { ...operator, expireTime: new Date(Date.now() - 1) };
    await expect(run(expired, family.filter, randomUUID())).rejects.toMatchObject({ code: "CALLER_UNAUTHENTICATED" });
    const name = { keyId: family.root, kind: null };
    const revocation = { reason: change.reason, description: null };
    const descendants = revokeWithDescendants(keys, expired, name, revocation, control);
    await expect(descendants).rejects.toMatchObject({ code: "CALLER_UNAUTHENTICATED" });
    expect(await changedOf(family)).toBe(0);
  });

  test("is not continued by the same caller with other restrictions", async () => {
    const restrictedTo = (actorIds: readonly string[]) => ({ ...operator, restrictions: { actorIds } });
    const [requestId, filter] = [randomUUID(), 'actor_id="of no key"'];
    await run(restrictedTo(["a"]), filter, requestId);
    await run(restrictedTo(["a"]), filter, requestId);
    await expect(run(restrictedTo(["a", "b"]), filter, requestId)).rejects.toMatchObject({ code: "REQUEST_ID_REUSED" });
  });

  test("that was forgotten meanwhile fails with CONCURRENT_CHANGE, and changes nothing", async () => {
    const family = await newFamily();
    const requestId = randomUUID();
    const forgetful: BulkStore = {
      ...keys.bulk,
      select: async (...selection) => {
        await suite.sql`DELETE FROM bulk_changes WHERE request_id = ${requestId}`;
        return keys.bulk.select(...selection);
      },
    };
    await expect(run(operator, family.filter, requestId, forgetful)).rejects.toMatchObject({
      code: "CONCURRENT_CHANGE",
    });
    expect(await changedOf(family)).toBe(0);
  });

  /** Another call changes the first keys: before this call, or after it has searched. */
  const SHARED: readonly (readonly [string, isBefore: boolean])[] = [
    ["before this call", true],
    ["during this call", false],
  ];

  test.each(table(SHARED))(
    "that another call has advanced %s returns when its node has caught up",
    async (_, isBefore) => {
      const family = await newFamily();
      const requestId = randomUUID();
      const [caughtUp, isDone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let isWaiting = false;
      const store: BulkStore = {
        ...keys.bulk,
        advance: async (...step) => {
          const advanced = await keys.bulk.advance(...step);
          if (advanced.operation.done) isDone.resolve();
          return advanced;
        },
        select: async (operation, selection, limit) => {
          const keyIds = await keys.bulk.select(operation, selection, limit);
          if (isBefore || operation.changedCount > 0) return keyIds;
          const many = { ...selection, keyIds: keyIds.slice(0, 1), requiresCaller: true, now: new Date() };
          await keys.bulk.advance(operation, many, false);
          return keyIds;
        },
        caughtUp: () => {
          isWaiting = true;
          return caughtUp.promise;
        },
      };
      if (isBefore) {
        const once = { ...control, mayContinue: () => false };
        const request = { filter: family.filter, change, validateOnly: false, requestId };
        await changeMany(keys, operator, request, once);
      }
      let isOver = false;
      const call = run(operator, family.filter, requestId, store).finally(() => {
        isOver = true;
      });
      // Not by polling: in a busy process, the call would change few keys.
      await withTimeout(isDone.promise, LONGEST_WORK, () => undefined);
      expect([isWaiting, isOver]).toEqual([true, false]);
      caughtUp.resolve();
      let progress = await call;
      while (!progress.done) progress = await run(operator, family.filter, requestId, store);
      expect(progress).toMatchObject({ changedCount: COUNT });
      expect(await changedOf(family)).toBe(COUNT);
    },
  );
});

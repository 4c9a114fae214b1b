import postgres from "postgres";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { revokeWithDescendants } from "../../src/keys/descendants.ts";
import { paceAt } from "../../src/keys/time-box.ts";
import { toConfig } from "../../src/server/config/config.ts";
import { openResources } from "../../src/server/resources.ts";
import { expectRefused, newRawKey, precondition, revoke, succeeded, table } from "../support/conformance.ts";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { eventually } from "../support/keyhold.ts";
import { addDescendants, countDescendants } from "../support/lineage.ts";
import { linesOf } from "../support/log-lines.ts";
import { importMany } from "../support/many-keys.ts";
import { operator } from "../support/principal.ts";
import { issue, type Json, paths, type RestClient, verify } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";

/** `:revoke` with `include_descendants` revokes what an admin token has made. */

const suite = useGuardedService();
const { rest } = suite;

interface Token {
  readonly keyId: string;
  readonly secret: string;
  readonly client: RestClient;
}

async function token(creator: RestClient, fields: Json = { scopes: ["keyhold:keys.write"] }): Promise<Token> {
  const { keyId, secret } = await issue(creator, fields);
  return { keyId, secret, client: suite.as(secret) };
}

const revokeAll = (caller: RestClient, keyId: string) =>
  caller("POST", `${paths.keys}/${keyId}:revoke`, {
    reason: "REVOCATION_REASON_KEY_COMPROMISE",
    include_descendants: true,
  });

/** Repeats the call until it is done: on a slow machine, its time may not suffice. Returns the number of descendants that were revoked. */
async function revokeToEnd(keyId: string): Promise<number> {
  for (let count = 0; ; ) {
    const { descendant_count, remaining_descendant_count, done } = succeeded(await revokeAll(rest, keyId));
    count += descendant_count;
    expect(remaining_descendant_count === 0).toBe(done);
    if (done) return count;
  }
}

const importDraft = (fields: Json = {}) => ({ name: "n", actor_id: "a", raw_key: newRawKey(), ...fields });

const errorOf = async (credential: string) => (await verify(rest, credential)).error_code;
const REVOKED = "VERIFICATION_ERROR_REVOKED";

let root: Token;
beforeEach(async () => {
  root = await token(rest);
});

/** Returns the number of keys that are not revoked and were created with one of these tokens. */
async function left(...tokens: readonly Token[]): Promise<number> {
  const creators = tokens.map(({ keyId }) => `admin-token:${keyId}`);
  const [row] = await suite.sql`
    SELECT count(*)::integer AS count FROM api_keys WHERE revoke_time IS NULL AND created_by = ANY (${creators})`;
  return row?.count;
}

test("revokes the keys of an admin token, those of its tokens, and so on; and no other", async () => {
  const child = await token(root.client);
  const grandchild = await token(child.client);
  const own = importDraft();
  const made = [
    (await issue(root.client)).secret,
    (await issue(grandchild.client)).secret,
    own.raw_key,
    child.secret,
    grandchild.secret,
  ];
  succeeded(await grandchild.client("POST", paths.imported, own));
  const { results } = succeeded(
    await child.client("POST", `${paths.imported}:batchCreate`, { requests: [importDraft(), importDraft()] }),
  );
  expect(results.map((one: Json) => one.imported_api_key.created_by)).toEqual(
    Array(2).fill(`admin-token:${child.keyId}`),
  );
  const other = await issue(rest);
  // The chain is followed through a token that is already revoked.
  await revoke(rest, child.keyId);
  for (const secret of made.slice(0, 3)) expect(await errorOf(secret)).toBeUndefined();
  const answer = succeeded(await revokeAll(rest, root.keyId));
  expect(answer).toMatchObject({ key_id: root.keyId, descendant_count: 6, remaining_descendant_count: 0 });
  for (const secret of [root.secret, ...made]) expect(await errorOf(secret)).toBe(REVOKED);
  expect(await errorOf(other.secret)).toBeUndefined();
});

test("the log names the descendants that were revoked", async () => {
  const { keyId } = await issue(root.client);
  succeeded(await revokeAll(rest, root.keyId));
  const lines = () => linesOf(suite.server.log()).filter(({ key_ids }) => key_ids?.includes(keyId));
  await eventually(async () => lines().length > 0);
  expect(lines()).toMatchObject([
    { msg: "keys changed", key_ids: [keyId], rpc: expect.stringMatching(/RevokeApiKey$/) },
  ]);
});

test("without the option, what an admin token has made stays", async () => {
  const { secret } = await issue(root.client);
  expect(await revoke(rest, root.keyId)).not.toHaveProperty("descendant_count");
  expect(await errorOf(secret)).toBeUndefined();
  const answer = succeeded(await revokeAll(rest, root.keyId));
  expect(answer).toMatchObject({ descendant_count: 1, remaining_descendant_count: 0, done: true });
  expect(await errorOf(secret)).toBe(REVOKED);
  expectRefused(await revokeAll(rest, root.keyId), precondition("API_KEY_ALREADY_REVOKED", root.keyId));
});

test("counts the descendants that the caller may not revoke", async () => {
  const admin = await token(rest, { scopes: ["keyhold:admin"] });
  const strong = await issue(admin.client, { scopes: ["keyhold:admin"] });
  const weak = await issue(admin.client);
  await revoke(rest, admin.keyId);
  const hunter = suite.token("keyhold:keys.revoke");
  // It lacks the scope of the root.
  expect((await revokeAll(suite.as(hunter), admin.keyId)).status).toBe(403);
  succeeded(await rest("PATCH", `${paths.issued}/${weak.keyId}`, { name: "still valid" }));
  const child = await token(root.client);
  const stronger = await issue(child.client);
  const plain = await issue(child.client);
  succeeded(await rest("PATCH", `${paths.issued}/${stronger.keyId}`, { scopes: ["keyhold:admin"] }));
  const caller = await token(rest);
  const answer = succeeded(await revokeAll(caller.client, root.keyId));
  expect(answer).toMatchObject({ descendant_count: 2, remaining_descendant_count: 1 });
  expect([await errorOf(plain.secret), await errorOf(stronger.secret)]).toEqual([REVOKED, undefined]);
  expect(await errorOf(strong.secret)).toBeUndefined();
});

test("a restricted caller revokes, and counts, only the descendants of its actors", async () => {
  const mine = await issue(root.client, { actor_id: "mine" });
  const foreign = await issue(root.client, { actor_id: "foreign" });
  const fields = { scopes: ["keyhold:keys.write"], actor_id: "mine", restricted_to_actor_ids: ["mine"] };
  const parent = await token(rest, fields);
  const caller = await token(rest, fields);
  await suite.sql`UPDATE api_keys SET created_by = ${`admin-token:${parent.keyId}`} WHERE key_id IN (${mine.keyId}, ${foreign.keyId})`;
  const answer = succeeded(await revokeAll(caller.client, parent.keyId));
  expect(answer).toMatchObject({ descendant_count: 1, remaining_descendant_count: 0 });
  expect([await errorOf(mine.secret), await errorOf(foreign.secret)]).toEqual([REVOKED, undefined]);
});

test("works in slices, and ends with keys in a cycle", async () => {
  const child = await token(root.client);
  const requests = Array.from({ length: 1000 }, () => importDraft());
  succeeded(await child.client("POST", `${paths.imported}:batchCreate`, { requests }));
  await suite.sql`UPDATE api_keys SET created_by = ${`admin-token:${child.keyId}`} WHERE key_id = ${root.keyId}`;
  expect(await left(root, child)).toBe(1002);
  expect(await revokeToEnd(root.keyId)).toBe(1001);
  expect(await left(root, child)).toBe(0);
});

describe("a call that ends early", () => {
  /** Two slices, and some keys more. */
  const COUNT = 2 * paceAt(0).slice + 7;

  test("says that it is not done, and another continues", async () => {
    await importMany(root.client, COUNT, { actor_id: "a" });
    const environment = { KEYHOLD_DATABASE_URL: suite.server.ownerUrl, KEYHOLD_ROOT_SECRET: ROOT_SECRET };
    const { keys, close } = await openResources(toConfig(environment), { log: () => {} });
    onTestFinished(() => close());
    const changed: string[] = [];
    const control = { mayContinue: () => false, onChanged: (keyIds: readonly string[]) => changed.push(...keyIds) };
    const revocation = { reason: "UNSPECIFIED", description: null } as const;
    const call = () => revokeWithDescendants(keys, operator, { keyId: root.keyId, kind: null }, revocation, control);
    for (let remaining = COUNT; remaining > 0; ) {
      const progress = await call();
      // A busy process has smaller slices.
      expect(progress.descendantCount).toBeGreaterThan(0);
      expect(progress.descendantCount).toBeLessThanOrEqual(paceAt(0).slice);
      remaining -= progress.descendantCount;
      expect(progress).toMatchObject({ remainingDescendantCount: remaining, done: remaining === 0 });
    }
    expect(new Set(changed).size).toBe(COUNT);
    await expect(call()).rejects.toMatchObject({ code: "API_KEY_ALREADY_REVOKED" });
  });

  test("stops when the client has gone away", async () => {
    await importMany(root.client, COUNT, { actor_id: "a" });
    const sql = postgres(suite.server.ownerUrl, { max: 1 });
    onTestFinished(() => sql.end());
    const client = new AbortController();
    await sql.begin(async (tx) => {
      await tx`SELECT FROM api_keys WHERE created_by = ${`admin-token:${root.keyId}`} FOR UPDATE`;
      const call = fetch(`${suite.server.url}${paths.keys}/${root.keyId}:revoke`, {
        method: "POST",
        headers: { ...bearer(suite.token("keyhold:admin")), "content-type": "application/json" },
        body: JSON.stringify({ include_descendants: true }),
        signal: client.signal,
      });
      await waiting(1);
      client.abort();
      await expect(call).rejects.toThrow("aborted");
      // The server has seen the end of that connection before it answers another.
      await verify(rest, root.secret);
    });
    await expect.poll(() => left(root), { interval: 10 }).toBeLessThan(COUNT);
    const remaining = await left(root);
    expect(remaining).toBeGreaterThanOrEqual(COUNT - paceAt(0).slice);
    expect(succeeded(await revokeAll(rest, root.keyId))).toMatchObject({ descendant_count: remaining, done: true });
  });
});

describe("a creation in flight", () => {
  test("is awaited, and its key is revoked", async () => {
    const sql = postgres(suite.server.ownerUrl, { max: 1 });
    onTestFinished(() => sql.end());
    await issue(root.client);
    const locked = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    // A new key is stored, but its transaction waits for this lock.
    const blocker = sql.begin(async (tx) => {
      await tx`LOCK TABLE raw_key_digests IN SHARE MODE`;
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    const creation = issue(root.client);
    await waiting(1);
    const revocation = revokeAll(rest, root.keyId);
    await Promise.race([waiting(2), revocation]);
    release.resolve();
    await blocker;
    const { secret } = await creation;
    expect(succeeded(await revocation)).toMatchObject({ descendant_count: 2, remaining_descendant_count: 0 });
    expect(await errorOf(secret)).toBe(REVOKED);
  });

  test("never survives, with 48 connections that create as fast as they can", async () => {
    const child = await token(root.client);
    let isOver = false;
    /** Repeats the call until it is refused, and returns the status. */
    const repeat = async (call: () => Promise<{ readonly status: number }>) => {
      for (;;) {
        const { status } = await call();
        if (status !== 200 || isOver) return status;
      }
    };
    /** Creates each token with the one before it. */
    const chain = ({ client }: Token) => {
      let last = client;
      return repeat(async () => {
        const { status, body } = await last("POST", paths.issued, {
          ...{ name: "n", actor_id: "a", scopes: ["keyhold:keys.write"] },
        });
        if (status === 200) last = suite.as(body.secret);
        return { status };
      });
    };
    const batches = ({ client }: Token) =>
      repeat(() => {
        const requests = Array.from({ length: 120 }, () => importDraft());
        return client("POST", `${paths.imported}:batchCreate`, { requests });
      });
    const creators = [
      ...Array.from({ length: 46 }, (_, i) => chain(i % 2 ? root : child)),
      batches(root),
      batches(child),
    ];
    const statuses = Promise.allSettled(creators);
    try {
      await eventually(async () => (await countDescendants(suite.sql, root.keyId)) > 400);
      const revoked = succeeded(await revokeAll(rest, root.keyId));
      // The first call ends all creations.
      expect(await countDescendants(suite.sql, root.keyId)).toBe(revoked.remaining_descendant_count);
      expect(await statuses).toEqual(creators.map(() => ({ status: "fulfilled", value: 401 })));
      const others = revoked.done ? 0 : await revokeToEnd(root.keyId);
      expect(await countDescendants(suite.sql, root.keyId)).toBe(0);
      expect(revoked.descendant_count + others).toBeGreaterThan(400);
    } finally {
      isOver = true;
      await statuses;
    }
  });
});

/** How a token becomes invalid, and how that is called. */
const INVALIDATIONS: readonly (readonly [state: string, invalidate: (keyId: string) => Promise<unknown>])[] = [
  ["is revoked", (keyId) => revoke(rest, keyId)],
  ["is disabled", async (keyId) => succeeded(await rest("POST", `${paths.keys}/${keyId}:disable`, {}))],
  ["has expired", (keyId) => suite.sql`UPDATE api_keys SET expire_time = now() WHERE key_id = ${keyId}`],
];

describe.each(table(INVALIDATIONS))("a token that %s", (state, invalidate) => {
  test("stops the creations of every token that descends from it, and no other", async () => {
    const child = await token(root.client);
    const grandchild = await token(child.client);
    const other = await token(rest);
    await issue(grandchild.client);
    await invalidate(root.keyId);
    const draft = { name: "n", actor_id: "a" };
    const attempts = [child, grandchild].flatMap(({ client }) => [
      client("POST", paths.issued, draft),
      client("POST", paths.imported, importDraft()),
      client("POST", `${paths.imported}:batchCreate`, { requests: [importDraft(), importDraft()] }),
    ]);
    // Concurrent creations share a statement.
    const others = Array.from({ length: 10 }, () => other.client("POST", paths.issued, draft));
    for (const { status, body } of await Promise.all(attempts)) {
      expect([status, body.error.details[0].reason]).toEqual([401, "CALLER_UNAUTHENTICATED"]);
      expect(body.error.message).toContain(`it descends from ${root.keyId}, which ${state}`);
    }
    for (const answer of await Promise.all(others)) succeeded(answer);
    expect(await left(child, grandchild)).toBe(2);
  });

  test("creates no key itself, over any statement", async () => {
    await invalidate(root.keyId);
    await expect(addDescendants(suite.sql, root.keyId, 1)).rejects.toMatchObject({
      code: "KH003",
      message: `it ${state}`,
    });
  });
});

test("a disabled token that is enabled again stops nothing", async () => {
  const child = await token(root.client);
  succeeded(await rest("POST", `${paths.keys}/${root.keyId}:disable`, {}));
  succeeded(await rest("POST", `${paths.keys}/${root.keyId}:enable`, {}));
  await issue(child.client);
});

test("a chain of tokens is revoked by one call", async () => {
  await addDescendants(suite.sql, root.keyId, 1_000);
  const branch = await addDescendants(suite.sql, (await token(root.client)).keyId, 10);
  expect(succeeded(await revokeAll(rest, branch))).toMatchObject({ descendant_count: 0, done: true });
  expect(await countDescendants(suite.sql, root.keyId)).toBe(1_010);
  expect(succeeded(await revokeAll(rest, root.keyId))).toMatchObject({ descendant_count: 1_010, done: true });
});

test("descendants are found by a created_by that was changed by hand", async () => {
  const [middle, last] = [await token(rest), await token(rest)];
  await suite.sql`UPDATE api_keys SET created_by = ${`admin-token:${middle.keyId}`} WHERE key_id = ${last.keyId}`;
  await suite.sql`UPDATE api_keys SET created_by = ${`admin-token:${root.keyId}`} WHERE key_id = ${middle.keyId}`;
  expect(succeeded(await revokeAll(rest, root.keyId))).toMatchObject({ descendant_count: 2, done: true });
});

/** Resolves when so many statements of the service wait for a lock. */
async function waiting(statements: number): Promise<void> {
  await eventually(async () => {
    const rows = await suite.sql`
      SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
    return rows.length >= statements;
  });
}

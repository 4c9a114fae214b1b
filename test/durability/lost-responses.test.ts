import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { importKey, newRawKey, table } from "../support/conformance.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { type Answer, issue, type Json, paths, type RestClient, restClient, verify } from "../support/rest.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { startCuttingProxy } from "../support/tcp-proxy.ts";

let database: TestDatabase;
let proxy: Awaited<ReturnType<typeof startCuttingProxy>>;
let server: TestServer;
let rest: RestClient;

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await startCuttingProxy(database.url);
  // With a cache, and notifications over another connection: the only responses of the database in a call are those to its change.
  server = await startTestServer({ KEYHOLD_DATABASE_URL: proxy.url, KEYHOLD_DATABASE_LISTEN_URL: database.url });
  rest = restClient(server);
});
afterAll(async () => {
  await server.close();
  proxy.close();
  await database.drop();
});

/** A change that its caller retries when the response is lost. */
interface Change {
  readonly send: () => Promise<Answer>;
  /** Whether it was executed, as seen by other callers. */
  readonly isMade: () => Promise<boolean>;
  /** The result of a retry after the first attempt was executed: docs/api.md, "Retries and idempotency". */
  readonly again: Json;
}

const someone = { name: "a key", actor_id: "actor_1" };
const refused = (status: number, reason: string) => ({
  status,
  body: { error: { details: expect.arrayContaining([expect.objectContaining({ reason })]) } },
});
const nameOf = async (path: string, id: string) => (await rest("GET", `${path}/${id}`)).body.name;
const isRevoked = async (id: string) =>
  (await rest("GET", `${paths.issued}/${id}`)).body.status === "KEY_STATUS_REVOKED";

/** Returns the number of keys of this actor. */
async function keysOf(path: string, actor: string): Promise<number> {
  const { body } = await rest("GET", `${path}?filter=${encodeURIComponent(`actor_id="${actor}"`)}`);
  return (body.issued_api_keys ?? body.imported_api_keys).length;
}

const CHANGES = table<readonly [string, () => Promise<Change>]>([
  [
    "create with request_id",
    async () => {
      const body = { ...someone, actor_id: randomUUID(), request_id: randomUUID() };
      return {
        send: () => rest("POST", paths.issued, body),
        isMade: async () => (await keysOf(paths.issued, body.actor_id)) === 1,
        again: { status: 200, body: { issued_api_key: { actor_id: body.actor_id } } },
      };
    },
  ],
  [
    "create without request_id",
    async () => {
      const body = { ...someone, actor_id: randomUUID() };
      return {
        send: () => rest("POST", paths.issued, body),
        isMade: async () => (await keysOf(paths.issued, body.actor_id)) > 0,
        again: { status: 200, body: { secret: expect.any(String) } },
      };
    },
  ],
  [
    "import with request_id",
    async () => {
      const body = { ...someone, raw_key: newRawKey(), request_id: randomUUID() };
      return {
        send: () => rest("POST", paths.imported, body),
        isMade: async () => (await verify(rest, body.raw_key)).is_valid,
        again: { status: 200, body: { status: "KEY_STATUS_ACTIVE" } },
      };
    },
  ],
  [
    "import without request_id",
    async () => {
      const body = { ...someone, raw_key: newRawKey() };
      return {
        send: () => rest("POST", paths.imported, body),
        isMade: async () => (await verify(rest, body.raw_key)).is_valid,
        again: refused(409, "RAW_KEY_ALREADY_EXISTS"),
      };
    },
  ],
  [
    "import a batch",
    async () => {
      const requests = [1, 2].map(() => ({ ...someone, raw_key: newRawKey() }));
      return {
        send: () => rest("POST", `${paths.imported}:batchCreate`, { requests }),
        isMade: async () => (await verify(rest, requests[1]?.raw_key ?? "")).is_valid,
        again: { status: 409 },
      };
    },
  ],
  [
    "update an issued key",
    async () => {
      const { keyId } = await issue(rest);
      return {
        send: () => rest("PATCH", `${paths.issued}/${keyId}`, { name: "changed" }),
        isMade: async () => (await nameOf(paths.issued, keyId)) === "changed",
        again: { status: 200, body: { name: "changed" } },
      };
    },
  ],
  [
    "update an imported key",
    async () => {
      const { keyId } = await importKey(rest);
      return {
        send: () => rest("PATCH", `${paths.imported}/${keyId}`, { name: "changed" }),
        isMade: async () => (await nameOf(paths.imported, keyId)) === "changed",
        again: { status: 200, body: { name: "changed" } },
      };
    },
  ],
  [
    "rotate",
    async () => {
      const { keyId, secret } = await issue(rest);
      return {
        send: () => rest("POST", `${paths.issued}/${keyId}:rotate`, {}),
        isMade: async () => !(await verify(rest, secret)).is_valid,
        again: { status: 200, body: { secret: expect.any(String) } },
      };
    },
  ],
  [
    "revoke",
    async () => {
      const { keyId } = await issue(rest);
      return {
        send: () => rest("POST", `${paths.keys}/${keyId}:revoke`, {}),
        isMade: () => isRevoked(keyId),
        again: refused(409, "API_KEY_ALREADY_REVOKED"),
      };
    },
  ],
  [
    "self-revoke",
    async () => {
      const { keyId, secret } = await issue(rest);
      await verify(rest, secret);
      return {
        send: () => rest("POST", paths.selfRevoke, { credential: secret }),
        isMade: () => isRevoked(keyId),
        again: refused(409, "API_KEY_ALREADY_REVOKED"),
      };
    },
  ],
  [
    "delete",
    async () => {
      const { keyId, rawKey } = await importKey(rest);
      return {
        send: () => rest("DELETE", `${paths.imported}/${keyId}`),
        isMade: async () => !(await verify(rest, rawKey)).is_valid,
        again: refused(404, "API_KEY_NOT_FOUND"),
      };
    },
  ],
]);

/** More than the database responses of any change. */
const MAX_ANSWERS = 40;

type Outcome = "answered" | "lost, made" | "lost, not made";

/** Makes a change whose connection is cut at this response, and retries it if its own was lost; null: there is no such response. */
async function cutAndRepeat({ send, isMade, again }: Change, answer: number): Promise<Outcome | null> {
  proxy.cutAt(answer);
  const reply = await send();
  const isCut = proxy.isCut();
  proxy.cutAt(Number.POSITIVE_INFINITY);
  const made = await isMade();
  if (reply.status === 200) {
    expect(made).toBe(true);
    // A cut of another connection does not affect this call.
    return isCut ? "answered" : null;
  }
  // After the response to the change follows that to its barrier: by then the change is executed and acknowledged.
  const [{ reason }] = reply.body.error.details;
  if (reason === "CHANGE_UNCONFIRMED") expect(made).toBe(true);
  else expect(reply).toMatchObject(refused(503, "DATABASE_UNAVAILABLE"));
  expect(reply.headers.get("retry-after")).toBe("1");
  expect(await send()).toMatchObject(made ? again : { status: 200 });
  expect(await isMade()).toBe(true);
  return made ? "lost, made" : "lost, not made";
}

test.each(CHANGES)(
  "%s: a cut at any point leaves it executed or not, its caller gets a response, and may retry it",
  async (_, prepare) => {
    const outcomes: Outcome[] = [];
    // A connection with the prepared statement answers only once, after the commit.
    for (const isKnown of [false, true]) {
      for (let answer = 0; ; answer++) {
        expect(answer).toBeLessThan(MAX_ANSWERS);
        if (isKnown) await (await prepare()).send();
        const outcome = await cutAndRepeat(await prepare(), answer);
        if (outcome === null) break;
        outcomes.push(outcome);
      }
    }
    expect(outcomes).toContain("lost, made");
  },
);

import { randomBytes } from "node:crypto";
import postgres, { type Sql } from "postgres";
import { describe, expect, onTestFinished, test } from "vitest";
import { importKey, newRawKey, revoke, succeeded, withQuery } from "../support/conformance.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { tally } from "../support/races.ts";
import { type Answer, type Json, paths, type RestClient, restClient, verify } from "../support/rest.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { rotateUnder } from "../support/signing-keys.ts";

const [FIRST, SECOND] = [newRoot(), newRoot()];

function newRoot(): string {
  return randomBytes(32).toString("base64url");
}

/** Current root secret first. */
type Roots = readonly [string, ...string[]];

/** A database, and a function that starts servers on it with different root secrets. */
async function openDatabase() {
  const database = await createTestDatabase();
  const sql = postgres(database.ownerUrl, { max: 1 });
  const servers: TestServer[] = [];
  onTestFinished(async () => {
    await Promise.all(servers.map((server) => server.close()));
    await sql.end();
    await database.drop();
  });
  const start = async ([current, ...others]: Roots) => {
    const roots = { KEYHOLD_ROOT_SECRET: current, KEYHOLD_ROOT_SECRETS_RETIRED: others.join(",") };
    const server = await startTestServer({ KEYHOLD_DATABASE_URL: database.url, ...roots });
    servers.push(server);
    return server;
  };
  return { sql, start };
}

function importing(raw_key: string): Json {
  return { raw_key, name: "imported", actor_id: "actor_1" };
}

async function countOf(sql: Sql): Promise<number> {
  const [row] = await sql`SELECT count(*)::int AS count FROM api_keys WHERE kind = 'imported'`;
  return row?.count;
}

const PAIRS: readonly (readonly [name: string, one: Roots, other: Roots])[] = [
  ["that both servers have, each with another current one", [FIRST, SECOND], [SECOND, FIRST]],
  ["of which one server has only the older", [FIRST], [SECOND, FIRST]],
];

describe.each(PAIRS)("with two root secrets %s,", (_name, one, other) => {
  async function openPair() {
    const { sql, start } = await openDatabase();
    const servers = [await start(one), await start(other)];
    return { sql, clients: servers.map((server): RestClient => restClient(server)) };
  }

  test("a raw key imported on two servers concurrently is one record, which a revocation ends", async () => {
    const { sql, clients } = await openPair();
    const rawKeys = Array.from({ length: 150 }, newRawKey);
    const answers = await Promise.all(
      rawKeys.flatMap((rawKey) => clients.map((rest) => rest("POST", paths.imported, importing(rawKey)))),
    );
    expect(tally(answers)).toEqual({ 200: 150, "409 RAW_KEY_ALREADY_EXISTS": 150 });
    expect(await countOf(sql)).toBe(150);
    for (const [place, rawKey] of rawKeys.slice(0, 10).entries()) {
      const made = answers.slice(2 * place, 2 * place + 2).find(({ status }) => status === 200);
      // The server with both.
      const rest = clients[1] ?? fail();
      expect(await verify(rest, rawKey)).toMatchObject({ is_valid: true, key_id: made?.body.key_id });
      await revoke(rest, made?.body.key_id);
      for (const client of clients) expect(await verify(client, rawKey)).toMatchObject({ is_valid: false });
    }
  });

  test("batches of the same raw keys in opposite orders agree with the stored keys", async () => {
    const { sql, clients } = await openPair();
    for (const size of [50, 300]) {
      const before = await countOf(sql);
      const requests = Array.from({ length: size }, () => importing(newRawKey()));
      const orders = [requests, requests.toReversed(), requests.slice(size / 2), requests.toReversed()];
      const answers = await Promise.all(
        orders.map((batch, place) =>
          clients[place % 2]?.("POST", `${paths.imported}:batchCreate`, { requests: batch }),
        ),
      );
      const made = answers.map((answer) => (answer?.status === 200 ? answer.body.success_count : 0));
      const outcomes = Object.keys(tally(answers.map((answer) => answer ?? fail())));
      expect(outcomes.filter((outcome) => !["200", "409 RAW_KEY_ALREADY_EXISTS"].includes(outcome))).toEqual([]);
      expect(made.reduce((sum, count) => sum + count, 0)).toBe(size);
      expect(await countOf(sql)).toBe(before + size);
    }
  });

  test("a deleted raw key may be imported again on either server", async () => {
    const { sql, clients } = await openPair();
    const rawKey = newRawKey();
    for (const rest of [...clients, ...clients]) {
      const { keyId } = await importKey(rest, { raw_key: rawKey });
      const again = await Promise.all(clients.map((client) => client("POST", paths.imported, importing(rawKey))));
      expect(tally(again)).toEqual({ "409 RAW_KEY_ALREADY_EXISTS": 2 });
      succeeded(await rest("DELETE", `${paths.imported}/${keyId}`));
    }
    expect(await countOf(sql)).toBe(0);
    expect(await sql`SELECT FROM raw_key_digests`).toEqual([]);
  });
});

describe("a raw key that was imported again while its root secret was missing", () => {
  /** A server with both root secrets, and a raw key with a record under each, the older one first. */
  async function openFound() {
    const { sql, start } = await openDatabase();
    const rawKey = newRawKey();
    const before = await start([FIRST]);
    const { keyId: older } = await importKey(restClient(before), { raw_key: rawKey, scopes: ["a"] });
    await rotateUnder(sql, { root: SECOND, retired: [FIRST] });
    await before.close();
    const lost = await start([SECOND]);
    const { keyId: newer } = await importKey(restClient(lost), { raw_key: rawKey, scopes: ["b"] });
    await lost.close();
    const found = await Promise.all([start([SECOND, FIRST]), start([FIRST, SECOND])]);
    return {
      sql,
      rawKey,
      older,
      newer,
      servers: found,
      clients: found.map((server): RestClient => restClient(server)),
    };
  }

  const record = async (clients: readonly RestClient[], rawKey: string) =>
    Promise.all(clients.map(async (rest) => (await verify(rest, rawKey)).key_id));

  test("resolves to the older record on every server, and a third import is refused", async () => {
    const { sql, rawKey, older, servers, clients } = await openFound();
    expect(await record(clients, rawKey)).toEqual([older, older]);
    const again: Answer[] = await Promise.all(clients.map((rest) => rest("POST", paths.imported, importing(rawKey))));
    expect(tally(again)).toEqual({ "409 RAW_KEY_ALREADY_EXISTS": 2 });
    expect(await countOf(sql)).toBe(2);
    for (const server of servers) expect(server.log()).toMatch(/"key_ids":\[[^\]]+\].*have the same raw key/);
  });

  test.each(["older", "newer"] as const)(
    "is revoked at once with its %s record, even if it was cached",
    async (which) => {
      const { rawKey, clients, ...ids } = await openFound();
      expect(await record(clients, rawKey)).toEqual([ids.older, ids.older]);
      await revoke(clients[0] ?? fail(), ids[which]);
      for (const rest of clients)
        expect(await verify(rest, rawKey)).toMatchObject({ is_valid: false, error_code: "VERIFICATION_ERROR_REVOKED" });
    },
  );

  test("resolves to the remaining record when one is deleted", async () => {
    const { rawKey, older, newer, clients } = await openFound();
    succeeded(await (clients[0] ?? fail())("DELETE", `${paths.imported}/${older}`));
    expect(await record(clients, rawKey)).toEqual([newer, newer]);
    const filter = withQuery(paths.imported, { page_size: "10" });
    expect(succeeded(await (clients[1] ?? fail())("GET", filter)).imported_api_keys).toHaveLength(1);
  });

  test("expires with the record that expires first", async () => {
    const { sql, rawKey, older, newer, clients } = await openFound();
    expect(await record(clients, rawKey)).toEqual([older, older]);
    await sql`UPDATE api_keys SET expire_time = now() - interval '1 second' WHERE key_id = ${newer}`;
    for (const rest of clients)
      expect(await verify(rest, rawKey)).toMatchObject({ is_valid: false, error_code: "VERIFICATION_ERROR_EXPIRED" });
  });
});

function fail(): never {
  throw new Error("unreachable");
}

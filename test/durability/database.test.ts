import postgres, { type Sql } from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { importKey, newRawKey, table } from "../support/conformance.ts";
import { freePort } from "../support/free-port.ts";
import { introspect } from "../support/introspect.ts";
import { eventually, runKeyhold } from "../support/keyhold.ts";
import { lockRow } from "../support/locked-row.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { outcome } from "../support/races.ts";
import { type Answer, issue, paths, type RestClient, restClient, verify } from "../support/rest.ts";
import { seededBy } from "../support/seeded.ts";
import { ROOT_SECRET, startTestServer, type TestServer } from "../support/server.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { expectStop } from "./expect-stop.ts";

const seeded = seededBy("KEYHOLD_FAULT_SEED");

let database: TestDatabase;
let proxy: TcpProxy;
let server: TestServer;
let rest: RestClient;
let sql: Sql;

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await TcpProxy.start(database.url);
  const url = new URL(proxy.url);
  url.searchParams.set("statement_timeout", "1000");
  server = await startTestServer({ KEYHOLD_DATABASE_URL: url.href });
  rest = restClient(server);
  // The owner may terminate the connections of the servers.
  sql = postgres(database.ownerUrl, { max: 2, onnotice: () => {} });
});

afterAll(async () => {
  await sql.end({ timeout: 0 });
  await server.close();
  await proxy.close();
  await database.drop();
});

/** The same in the form of OAuth: never `active: false`, because the server does not know. */
function expectOAuthUnavailable({ status, headers, body }: Answer): void {
  expect(body).toEqual({ error: "temporarily_unavailable", error_description: expect.any(String) });
  expect([status, headers.get("retry-after"), headers.get("cache-control")]).toEqual([503, "1", "no-store"]);
}

function expectUnavailable({ status, headers, body }: Answer): void {
  expect(body).toMatchObject({
    error: {
      code: 503,
      status: "UNAVAILABLE",
      details: [{ reason: "DATABASE_UNAVAILABLE", domain: "keyhold" }, { retry_delay: "1s" }],
    },
  });
  expect(status).toBe(503);
  expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
}

async function untilReady(): Promise<void> {
  await eventually(async () => (await rest("GET", "/health/ready")).status === 200);
}

const someone = { name: "a key", actor_id: "actor_1" };

/** Every call that needs the database. */
const CALLS = table<
  readonly [string, (issued: { keyId: string; secret: string }, importedId: string) => Parameters<RestClient>]
>([
  ["create an issued key", () => ["POST", paths.issued, someone]],
  ["get an issued key", ({ keyId }) => ["GET", `${paths.issued}/${keyId}`]],
  ["list issued keys", () => ["GET", paths.issued]],
  ["update an issued key", ({ keyId }) => ["PATCH", `${paths.issued}/${keyId}`, { name: "changed" }]],
  ["rotate", ({ keyId }) => ["POST", `${paths.issued}/${keyId}:rotate`, {}]],
  ["import", () => ["POST", paths.imported, { ...someone, raw_key: newRawKey() }]],
  [
    "import a batch",
    () => ["POST", `${paths.imported}:batchCreate`, { requests: [{ ...someone, raw_key: newRawKey() }] }],
  ],
  ["get an imported key", (_, id) => ["GET", `${paths.imported}/${id}`]],
  ["list imported keys", () => ["GET", paths.imported]],
  ["update an imported key", (_, id) => ["PATCH", `${paths.imported}/${id}`, { name: "changed" }]],
  ["delete", (_, id) => ["DELETE", `${paths.imported}/${id}`]],
  [
    "derive",
    ({ secret }) => ["POST", `${paths.keys}:derive`, { credential: secret, algorithm: "TOKEN_ALGORITHM_JWT" }],
  ],
  ["verify", ({ secret }) => ["POST", `${paths.keys}:verify`, { credential: secret }]],
  ["verify a batch", ({ secret }) => ["POST", `${paths.keys}:batchVerify`, { requests: [{ credential: secret }] }]],
  ["revoke", ({ keyId }) => ["POST", `${paths.keys}/${keyId}:revoke`, {}]],
  ["self-revoke", ({ secret }) => ["POST", paths.selfRevoke, { credential: secret }]],
]);

test("without a database every call that needs it answers 503 at once, and all work again after recovery", async () => {
  const issued = await issue(rest);
  const { keyId: importedId } = await importKey(rest);
  await proxy.down();
  const began = performance.now();
  for (let round = 0; round < 3; round++) {
    const answers = await Promise.all(CALLS.map(([, request]) => rest(...request(issued, importedId))));
    answers.forEach(expectUnavailable);
    expectOAuthUnavailable(await introspect(server, { token: issued.secret }));
  }
  expect(performance.now() - began).toBeLessThan(10_000);
  expect(await rest("GET", "/health/ready")).toMatchObject({
    status: 503,
    body: { status: "unavailable", checks: { database: "unavailable" } },
  });
  expect((await rest("GET", "/health/alive")).status).toBe(200);
  expect((await rest("GET", paths.jwks)).status).toBe(200);
  expect(await verify(rest, `${issued.secret.slice(0, -1)}!`)).toMatchObject({ is_valid: false });
  await proxy.up();
  await untilReady();
  expect(await verify(rest, issued.secret)).toMatchObject({ is_valid: true });
  const answers = [];
  for (const [, request] of CALLS)
    answers.push(await rest(...request(await issue(rest), (await importKey(rest)).keyId)));
  expect(answers.map(({ status }) => status)).toEqual(CALLS.map(() => 200));
});

test("connections cut under load cause only 503, and later calls succeed", async () => {
  const { secret } = await issue(rest);
  const outcomes = new Set<string>();
  const over = new AbortController();
  const callers = Array.from({ length: 8 }, async () => {
    while (!over.signal.aborted) {
      const answer = await rest("POST", `${paths.keys}:verify`, { credential: secret });
      outcomes.add(answer.status === 200 ? `200 ${answer.body.is_valid}` : outcome(answer));
    }
  });
  for (let cut = 0; cut < 20; cut++) {
    for (let calls = seeded.below(4); calls >= 0; calls--)
      await rest("POST", `${paths.keys}:verify`, { credential: secret });
    proxy.cut(seeded.pick(["fin", "rst"]));
  }
  over.abort();
  await Promise.all(callers);
  // Most calls wait milliseconds for the next lease; one whose read is cut is refused.
  expect(["200 true", "503 DATABASE_UNAVAILABLE"]).toEqual(expect.arrayContaining([...outcomes]));
  expect(outcomes).toContain("200 true");
  await untilReady();
  const after = await Promise.all(Array.from({ length: 60 }, () => verify(rest, secret)));
  expect(after.filter(({ is_valid }) => !is_valid)).toEqual([]);
});

test("killed backends cause at most 503, and the next calls succeed", async () => {
  const { secret } = await issue(rest);
  const send = () => rest("POST", `${paths.keys}:verify`, { credential: secret });
  const answers = Promise.all(Array.from({ length: 60 }, send));
  await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'keyhold'`;
  for (const answer of await answers) if (answer.status !== 200) expectUnavailable(answer);
  await untilReady();
  const next = await Promise.all(Array.from({ length: 60 }, send));
  expect(next.filter(({ status }) => status !== 200)).toEqual([]);
});

test("a rotation of the signing key reaches the server after the database has recovered", async () => {
  proxy.cut("rst");
  await untilReady();
  const before = (await rest("GET", paths.jwks)).text;
  const environment = { KEYHOLD_DATABASE_URL: database.url, KEYHOLD_ROOT_SECRET: ROOT_SECRET };
  expect(await runKeyhold(["signing-keys", "rotate"], environment)).toMatchObject({ code: 0 });
  await eventually(async () => (await rest("GET", paths.jwks)).text !== before);
});

test("a change that waits too long for another fails with 503 and is not executed", async () => {
  const { keyId } = await issue(rest);
  const { release } = await lockRow(sql, keyId);
  expectUnavailable(await rest("PATCH", `${paths.issued}/${keyId}`, { name: "changed" }));
  await release();
  expect((await rest("GET", `${paths.issued}/${keyId}`)).body.name).toBe("a key");
  expect((await rest("PATCH", `${paths.issued}/${keyId}`, { name: "changed" })).status).toBe(200);
});

test("a server whose database is down stops on SIGTERM", () => expectStop(database.url, "down"));

test("a server whose database is down at start reports that and exits with 6", async () => {
  const port = await freePort();
  const environment = {
    KEYHOLD_DATABASE_URL: `postgres://user:password-of-the-user@127.0.0.1:${port}/none`,
    KEYHOLD_ROOT_SECRET: ROOT_SECRET,
  };
  expect(await runKeyhold(["serve"], environment)).toEqual({
    code: 6,
    signal: null,
    stdout: "",
    stderr: `keyhold: the database is unreachable: connect ECONNREFUSED 127.0.0.1:${port}\n`,
  });
});

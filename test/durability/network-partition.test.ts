import { afterAll, beforeAll, expect, test } from "vitest";
import { derive, importKey, newRawKey, revoke, useService } from "../support/conformance.ts";
import { eventually } from "../support/keyhold.ts";
import { issue, paths, type RestClient, restClient, verify } from "../support/rest.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

/** It is waited for, and is not lost on a slow machine. */
const LEASE = { KEYHOLD_LEASE_TTL: "5s" };

/** How long a call would wait that queries the database nevertheless, in milliseconds. */
const STATEMENT_TIMEOUT = 10_000;

const suite = useService(LEASE);
let proxy: TcpProxy;
let cut: TestServer;
const remote: RestClient = (...request) => restClient(cut)(...request);

beforeAll(async () => {
  proxy = await TcpProxy.start(suite.server.databaseUrl);
  cut = await startTestServer({ ...LEASE, KEYHOLD_DATABASE_URL: proxy.url });
});
afterAll(async () => {
  proxy.thaw();
  await cut.close();
  await proxy.close();
});

const isReady = async () => (await remote("GET", "/health/ready")).status === 200;
const ask = (credential: string) => remote("POST", `${paths.keys}:verify`, { credential });

test("a partitioned node answers from its cache until its lease ends, then 503, and recovers on its own", async () => {
  const { secret, keyId } = await issue(suite.rest);
  expect(await verify(remote, secret)).toMatchObject({ is_valid: true });

  proxy.freeze();
  expect(await verify(remote, secret)).toMatchObject({ is_valid: true });
  await revoke(suite.rest, keyId);

  const refused = await ask(secret);
  expect(refused).toMatchObject({ status: 503, body: { error: { status: "UNAVAILABLE" } } });
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await isReady()).toBe(false);
  expect((await remote("GET", "/health/alive")).status).toBe(200);
  const start = performance.now();
  expect(await Promise.all(Array.from({ length: 50 }, async () => (await ask(secret)).status))).toEqual(
    Array(50).fill(503),
  );
  expect(performance.now() - start).toBeLessThan(STATEMENT_TIMEOUT);

  proxy.thaw();
  await eventually(isReady);
  expect(await verify(remote, secret)).toMatchObject({
    is_valid: false,
    error_code: "VERIFICATION_ERROR_REVOKED",
  });
});

test("a node without its notification connection returns correct verdicts", async () => {
  const { secret, keyId } = await issue(suite.rest);
  const jwt = (await derive(suite.rest, secret)).token;
  for (const credential of [secret, jwt]) expect((await verify(remote, credential)).is_valid).toBe(true);
  const joins = async () => (await suite.sql`SELECT join_time FROM nodes`).map(({ join_time }) => Number(join_time));
  const before = await joins();
  await suite.sql`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'keyhold feed'`;
  await revoke(suite.rest, keyId);
  for (const credential of [secret, jwt]) expect((await verify(remote, credential)).is_valid).toBe(false);
  await eventually(async () => (await joins()).every((time) => time > Math.max(...before)));
  await eventually(isReady);
});

test("a change on one node takes effect on all others at once: keys, their tokens, and raw keys cached as not found", async () => {
  for (let round = 0; round < 20; round++) {
    const [first, second] = round % 2 === 0 ? [suite.rest, remote] : [remote, suite.rest];
    const rawKey = newRawKey();
    expect((await verify(second, rawKey)).is_valid).toBe(false);
    const { keyId } = await importKey(first, { raw_key: rawKey });
    expect((await verify(second, rawKey)).is_valid).toBe(true);
    const macaroon = (await derive(second, rawKey, { algorithm: "TOKEN_ALGORITHM_MACAROON" })).token;
    expect((await verify(first, macaroon)).is_valid).toBe(true);
    await revoke(second, keyId);
    for (const credential of [rawKey, macaroon]) expect((await verify(first, credential)).is_valid).toBe(false);
  }
});

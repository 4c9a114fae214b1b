import { afterAll, beforeAll, expect, test } from "vitest";
import { bearer } from "../support/guarded.ts";
import { introspect } from "../support/introspect.ts";
import { eventually } from "../support/keyhold.ts";
import { linesOf } from "../support/log-lines.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { issue, paths, restClient } from "../support/rest.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

/** In milliseconds: the minimum lease of the configuration, and a grace period. */
const LEASE = 1_000;
const GRACE = 3_000;

let database: TestDatabase;
let proxy: TcpProxy;
let server: TestServer;
/** Another node, which always reaches the database. */
let other: TestServer;

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await TcpProxy.start(database.url);
  const lease = { KEYHOLD_LEASE_TTL: "1s" };
  other = await startTestServer({ ...lease, KEYHOLD_DATABASE_URL: database.url });
  server = await startTestServer({
    ...lease,
    KEYHOLD_DATABASE_URL: proxy.url,
    KEYHOLD_STALE_GRACE: "3s",
    KEYHOLD_AUTH: "none",
  });
});
afterAll(async () => {
  await Promise.all([server.close(), other.close()]);
  await proxy.close();
  await database.drop();
});

const verdictOf = async (secret: string, headers: Record<string, string> = {}) =>
  (await restClient(server, headers)("POST", `${paths.keys}:verify`, { credential: secret })) as Awaited<
    ReturnType<ReturnType<typeof restClient>>
  >;

test("in the grace period cached verdicts are returned as stale, and a revocation is delayed at most that long", async () => {
  const rest = restClient(server);
  const [known, unknown] = [await issue(rest), await issue(rest)];
  expect((await verdictOf(known.secret)).body).not.toHaveProperty("stale");
  proxy.freeze();
  const frozen = performance.now();
  await eventually(async () => (await verdictOf(known.secret)).body.stale === true);
  const revoked = await restClient(other)("POST", `${paths.keys}/${known.keyId}:revoke`, {
    reason: "REVOCATION_REASON_KEY_COMPROMISE",
  });
  expect(revoked.status).toBe(200);
  const answered = performance.now();

  expect(await verdictOf(known.secret)).toMatchObject({ status: 200, body: { is_valid: true, stale: true } });
  const batch = await rest("POST", `${paths.keys}:batchVerify`, {
    requests: [{ credential: known.secret }],
  });
  expect(batch.body.results).toMatchObject([{ is_valid: true, stale: true }]);
  expect((await introspect(server, { token: known.secret })).body).toMatchObject({ active: true });
  expect(await introspect(server, { token: unknown.secret })).toMatchObject({
    status: 503,
    body: { error: "temporarily_unavailable" },
  });
  expect((await verdictOf(unknown.secret)).status).toBe(503);
  expect((await verdictOf(known.secret, { "cache-control": "no-cache" })).status).toBe(503);
  const derived = await rest("POST", `${paths.keys}:derive`, {
    credential: known.secret,
    algorithm: "TOKEN_ALGORITHM_MACAROON",
  });
  expect(derived.status).toBe(503);

  let last = answered;
  for (let status = 200; status === 200; ) {
    const begun = performance.now();
    ({ status } = await verdictOf(known.secret));
    if (status === 200) last = begun;
  }
  expect(last - answered).toBeLessThanOrEqual(GRACE);
  expect(last - frozen).toBeLessThanOrEqual(LEASE + GRACE);
  proxy.thaw();
  await eventually(async () => (await verdictOf(known.secret)).status === 200);
  expect((await verdictOf(known.secret)).body).toMatchObject({
    is_valid: false,
    error_code: "VERIFICATION_ERROR_REVOKED",
  });
  expect((await verdictOf(known.secret)).body).not.toHaveProperty("stale");
  const lines = linesOf(server.log());
  expect(lines.filter(({ msg }) => String(msg).includes("marked as stale"))).toHaveLength(1);
  expect(lines.some(({ stale, verdict }) => stale === "true" && verdict === "VALID")).toBe(true);
});

test("an admin token with a stale verdict is not accepted", async () => {
  const { secret } = await issue(restClient(server), { scopes: ["keyhold:admin"] });
  await server.restart({ KEYHOLD_AUTH: "admin-token" });
  const admin = restClient(server, bearer(secret));
  expect((await admin("POST", `${paths.keys}:verify`, { credential: secret })).status).toBe(200);
  proxy.freeze();
  await eventually(async () => (await fetch(`${server.url}/health/ready`)).status === 503);
  expect((await admin("POST", `${paths.keys}:verify`, { credential: secret })).status).toBe(503);
  proxy.thaw();
});

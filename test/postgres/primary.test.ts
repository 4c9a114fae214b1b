import { chmod, chown, copyFile, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import type { Sql } from "postgres";
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from "vitest";
import { createOpenFeed } from "../../src/postgres/cluster/change-feed.ts";
import { databaseError } from "../../src/postgres/connection/errors.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { openPrimary } from "../../src/postgres/connection/primary.ts";
import { openSchema } from "../../src/postgres/migrations/schema.ts";
import { table } from "../support/conformance.ts";
import { freePort } from "../support/free-port.ts";
import { listenLocally } from "../support/listen.ts";
import { issue, restClient } from "../support/rest.ts";
import { startTestServer } from "../support/server.ts";
import { type PostgresServer, startPrimary } from "../support/standby.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

const TLS = join(import.meta.dirname, "../support/tls");
const UNAVAILABLE = { code: "DATABASE_UNAVAILABLE", message: "the database is unreachable" };

let dir: string;
let primary: PostgresServer;
let standby: PostgresServer;

beforeAll(async () => {
  dir = await mkdtemp(join(inject("testDir"), "primary-"));
  primary = await startPrimary(dir, "primary", { listen_addresses: "127.0.0.1,127.0.0.2" });
  standby = await primary.addStandby("s1");
});

afterAll(async () => {
  await standby.close();
  await primary.close();
  await rm(dir, { recursive: true, force: true });
});

const portOf = async (sql: Sql): Promise<number> => (await sql`SELECT inet_server_port() AS port`)[0]?.port;

function openPool(addresses: string, query = ""): Pool {
  const options = { maxConnections: 3, statementTimeout: 5_000, prepare: true };
  const pool = new Pool({ ...options, url: `${primary.url(addresses)}${query}` });
  onTestFinished(() => pool.close());
  return pool;
}

/** A server that accepts connections and never answers. */
async function startUnresponsive() {
  let connections = 0;
  const server = createServer(() => connections++);
  onTestFinished(() => void server.close());
  return { address: `127.0.0.1:${await listenLocally(server)}`, connections: () => connections };
}

/** Starts a proxy to a server that counts its connections. */
async function startCounted(server: PostgresServer) {
  let connections = 0;
  const filter = () => {
    connections++;
    return (response: Buffer) => response;
  };
  const proxy = await TcpProxy.start(server.url(), { filter });
  onTestFinished(() => proxy.close());
  return { address: new URL(proxy.url).host, connections: () => connections };
}

const failureOf = (work: Promise<unknown>) => work.then(() => "no failure", databaseError);

test("a standby is skipped during the first use, and later connections start with the primary", async () => {
  const counted = await startCounted(standby);
  const pool = openPool(`${counted.address},${primary.address}`);
  expect(await pool.run(portOf)).toBe(primary.port);
  const ports = await Promise.all([1, 2, 3].map(() => pool.run(portOf)));
  expect(ports).toEqual([primary.port, primary.port, primary.port]);
  expect(counted.connections()).toBe(1);
});

test("a host that refuses connections is skipped", async () => {
  const pool = openPool(`127.0.0.1:${await freePort()},nowhere.invalid,${primary.address}`);
  expect(await pool.run(portOf)).toBe(primary.port);
});

test("a host that never answers costs less than a second, once", async () => {
  const silent = await startUnresponsive();
  const pool = openPool(`${silent.address},${primary.address}`);
  const began = performance.now();
  expect(await pool.run(portOf)).toBe(primary.port);
  expect(performance.now() - began).toBeLessThan(1_500);
  await Promise.all([1, 2, 3].map(() => pool.run(portOf)));
  expect(silent.connections()).toBe(1);
});

test("without a primary the error has the state of each host, and neither user nor password", async () => {
  const port = await freePort();
  const addresses = `${standby.address}, 127.0.0.1:${port}`;
  const failure = await failureOf(openPool(addresses.replace(" ", "")).run(portOf));
  expect(failure).toMatchObject({
    ...UNAVAILABLE,
    cause: {
      message: `no primary among ${addresses}: ${standby.address} is a standby (in recovery), 127.0.0.1:${port} refused the connection`,
    },
  });
  expect(await failureOf(openPool(standby.address).run(portOf))).toMatchObject({
    ...UNAVAILABLE,
    cause: { message: `no primary among ${standby.address}: ${standby.address} is a standby (in recovery)` },
  });
  await expect(openSchema(standby.url())).rejects.toMatchObject(UNAVAILABLE);
});

test.each(table(["any", "standby", "read-only"]))(
  "PGTARGETSESSIONATTRS=%s, meant for other programs, has no effect",
  async (value) => {
    vi.stubEnv("PGTARGETSESSIONATTRS", value);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await openPool(`${standby.address},${primary.address}`).run(portOf)).toBe(primary.port);
  },
);

test("the connection fails when all hosts refuse the password", async () => {
  const url = Object.assign(new URL(primary.url()), { password: "wrong" }).href;
  const both = url.replace(primary.address, `${standby.address},${primary.address}`);
  const failure = await failureOf(openPrimary({ url: both, statementTimeout: 0, prepare: false }).ready);
  expect(failure).toMatchObject({ message: "the database rejected the login", cause: { code: "28P01" } });
});

test("an aborted search closes its connections at once", async () => {
  const silent = await startUnresponsive();
  const url = primary.url(silent.address);
  const opening = openPrimary({ url, statementTimeout: 0, prepare: false });
  const began = performance.now();
  await opening.end({ timeout: 0 });
  expect(await failureOf(opening.ready)).toMatchObject(UNAVAILABLE);
  expect(performance.now() - began).toBeLessThan(1_000);
});

test("a connection that closes while idle is replaced before the next use", async () => {
  const pool = openPool(primary.address);
  const [row] = await pool.run((sql) => sql`SELECT pg_backend_pid() AS pid`);
  await primary.admin`SELECT pg_terminate_backend(${row?.pid})`;
  await expect.poll(() => pool.usage.open).toBe(0);
  expect(await pool.run(portOf)).toBe(primary.port);
});

test("a connection to a standby alone is refused, and does not stay open", async () => {
  const options = { statementTimeout: 0, prepare: false, applicationName: "refused" };
  expect(await failureOf(openPrimary({ url: primary.url(standby.address), ...options }).ready)).toMatchObject(
    UNAVAILABLE,
  );
  const open = () => standby.admin`SELECT pid FROM pg_stat_activity WHERE application_name = 'refused'`;
  await expect.poll(open).toHaveLength(0);
});

test("the notification connection finds the primary on its own", async () => {
  const counted = await startCounted(standby);
  const url = primary.url(`${counted.address},${primary.address}`);
  const sessions = [];
  for (let count = 0; count < 2; count++) {
    const session = await createOpenFeed(url)({ onEvent: () => {}, onLost: () => {} }, 3_000);
    onTestFinished(() => session.end());
    sessions.push(session);
  }
  const [first, second] = sessions.map(({ position }) => position.server);
  expect(first).toBe(second);
  expect(counted.connections()).toBe(1);
});

test("TLS checks the name of the connected host", async () => {
  await offerTls();
  const trusted = getCACertificates("default");
  onTestFinished(() => setDefaultCACertificates(trusted));
  setDefaultCACertificates([await readFile(join(TLS, "localhost.cert.pem"), "utf8")]);
  const tlsOf = async (addresses: string) => {
    const pool = openPool(addresses, "?sslmode=verify-full");
    const [row] = await pool.run((sql) => sql`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`);
    return row?.ssl;
  };
  const { port } = primary;
  expect(await tlsOf(`localhost:${port}`)).toBe(true);
  expect(await tlsOf(`127.0.0.1:${port}`)).toBe(true);
  expect(await tlsOf(`127.0.0.2:${port},127.0.0.1:${port}`)).toBe(true);
  expect(await failureOf(tlsOf(`127.0.0.2:${port}`))).toMatchObject({
    ...UNAVAILABLE,
    cause: { code: "ERR_TLS_CERT_ALTNAME_INVALID" },
  });
});

/** With a certificate for localhost and 127.0.0.1, and none for 127.0.0.2. */
async function offerTls(): Promise<void> {
  const data = join(dir, "primary", "postgres");
  const { uid, gid } = await stat(data);
  for (const [from, to] of [
    ["localhost.cert.pem", "server.crt"],
    ["localhost.key.pem", "server.key"],
  ] as const) {
    await copyFile(join(TLS, from), join(data, to));
    await chown(join(data, to), uid, gid);
    await chmod(join(data, to), 0o600);
  }
  await primary.configure({ ssl: "on" });
}

test("a server with a standby listed first serves, and after a failover uses only the new primary", async () => {
  const addresses = `${standby.address},${primary.address}`;
  const server = await startTestServer({ KEYHOLD_DATABASE_URL: primary.url(addresses) });
  onTestFinished(() => server.close());
  const client = restClient(server);
  await issue(client);
  const pool = openPool(addresses);
  expect(await pool.run(portOf)).toBe(primary.port);
  await primary.untilReplayed("s1");
  await primary.kill();
  await standby.promote();
  await expect.poll(() => pool.run(portOf).catch(() => null), { timeout: 10_000 }).toBe(standby.port);
  await expect.poll(async () => (await fetch(`${server.url}/health/ready`)).status, { timeout: 10_000 }).toBe(200);
  await issue(client);

  const old = openPool(primary.address);
  await writeFile(join(dir, "primary", "postgres", "standby.signal"), "");
  await primary.start();
  expect(await failureOf(old.run(portOf))).toMatchObject({
    ...UNAVAILABLE,
    cause: { message: expect.stringContaining("is a standby (in recovery)") },
  });
  expect(await openPool(`${primary.address},${standby.address}`).run(portOf)).toBe(standby.port);
});

test("idle connections do not read from a primary that returns as a standby", async () => {
  const pool = openPool(standby.address);
  expect(await pool.run(portOf)).toBe(standby.port);
  await standby.stop();
  await writeFile(join(dir, "s1", "postgres", "standby.signal"), "");
  await standby.start();
  expect(await failureOf(pool.run(portOf))).toMatchObject({
    ...UNAVAILABLE,
    cause: { message: expect.stringContaining("is a standby (in recovery)") },
  });
});

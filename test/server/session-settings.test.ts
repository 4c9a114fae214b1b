import postgres, { type Sql } from "postgres";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { derive, importKey, newRawKey, table } from "../support/conformance.ts";
import { hasPgBouncer, PgBouncer } from "../support/pgbouncer.ts";
import { createTestDatabase, runAsSuperuser, type TestDatabase, userOf } from "../support/postgres.ts";
import { type Answer, issue, type Json, paths, type RestClient, restClient } from "../support/rest.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

/** A schema with empty tables of Keyhold's names. */
const OTHER_SCHEMA = "imitation";

/**
 * Foreign values. Two of them are respected: a database that is read-only grants no lease, and a session without triggers is not used, because
 * its changes would notify nobody.
 */
const SETTINGS = table([
  ["bytea_output", "escape"],
  ["client_encoding", "LATIN1"],
  ["DateStyle", "German, DMY"],
  ["DateStyle", "SQL, DMY"],
  ["IntervalStyle", "sql_standard"],
  ["TimeZone", "Asia/Kathmandu"],
  ["search_path", "pg_catalog"],
  ["search_path", OTHER_SCHEMA],
  ["extra_float_digits", "-15"],
  ["standard_conforming_strings", "off"],
  ["default_transaction_isolation", "serializable"],
  ["default_transaction_deferrable", "on"],
  ["default_transaction_read_only", "on"],
  ["row_security", "off"],
  ["lock_timeout", "1ms"],
  ["statement_timeout", "1ms"],
  ["session_replication_role", "replica"],
] as const);

const REJECTED: readonly string[] = ["default_transaction_read_only", "session_replication_role"];

let database: TestDatabase;
let owner: Sql;
let superuser: Sql;
let role: string;
let expected: Readonly<Record<string, string>>;
const credentials: Record<string, string> = {};

beforeAll(async () => {
  database = await createTestDatabase();
  role = userOf(database.url);
  owner = postgres(database.ownerUrl, { max: 1, onnotice: () => {} });
  const url = new URL(await runAsSuperuser([]));
  superuser = postgres(Object.assign(url, { pathname: new URL(database.url).pathname }).href, {
    ...{ max: 1, onnotice: () => {} },
  });
  await owner.unsafe(`CREATE SCHEMA ${OTHER_SCHEMA}; GRANT USAGE ON SCHEMA ${OTHER_SCHEMA} TO ${role}`);
  for (const name of ["api_keys", "raw_key_digests"])
    await owner.unsafe(`
      CREATE TABLE ${OTHER_SCHEMA}.${name} (LIKE ${name} INCLUDING ALL); GRANT ALL ON ${OTHER_SCHEMA}.${name} TO ${role}`);
  await superuser.unsafe(`
    GRANT SET ON PARAMETER session_replication_role TO ${role};
    CREATE FUNCTION set_for_session(name text, value text) RETURNS boolean
      LANGUAGE sql VOLATILE AS $$ SELECT set_config(name, value, false) IS NOT NULL $$`);
});
afterAll(async () => {
  await superuser.unsafe(`REVOKE SET ON PARAMETER session_replication_role FROM ${role}`);
  await Promise.all([owner.end(), superuser.end()]);
  await database.drop();
});

/** Makes credentials of every kind, and what is expected of them. */
async function fill(rest: RestClient): Promise<void> {
  const rotated = await issue(rest, { ttl: "30d" });
  const { body } = await rest("POST", `${paths.issued}/${rotated.keyId}:rotate`, { grace_period: "1d" });
  const revoked = await issue(rest);
  await rest("POST", `${paths.keys}/${revoked.keyId}:revoke`, { reason: "REVOCATION_REASON_SUPERSEDED" });
  const raw = newRawKey();
  await importKey(rest, { raw_key: raw, ttl: "30d" });
  Object.assign(credentials, {
    ...{ current: body.secret, previous: rotated.secret, revoked: revoked.secret, imported: raw },
    ...{ unknown: newRawKey(), jwt: (await derive(rest, body.secret, { ttl: "1d" })).token },
  });
  const valid = Object.keys(credentials).map((name) => [name, "VALID"]);
  expected = { ...Object.fromEntries(valid), revoked: "REVOKED", unknown: "NOT_FOUND" };
}

const ERROR_PREFIX = "VERIFICATION_ERROR_";

/** Returns the verdicts on all credentials from the database; the status of calls without one. */
async function verdicts(rest: RestClient): Promise<Record<string, string | number>> {
  const entries = Object.entries(credentials).map(async ([name, credential]) => {
    const { status, body } = await rest(
      "POST",
      `${paths.keys}:verify`,
      { credential },
      { "cache-control": "no-store" },
    );
    if (status !== 200) return [name, status] as const;
    return [name, body.is_valid ? "VALID" : body.error_code.slice(ERROR_PREFIX.length)] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

/** Returns verdicts of which none is wrong, though calls may have failed. */
async function neverWrong(rest: RestClient): Promise<boolean> {
  const found = await verdicts(rest);
  const given = Object.entries(found).filter(([, verdict]) => verdict !== 500 && verdict !== 503);
  expect(Object.fromEntries(given)).toEqual(Object.fromEntries(given.map(([name]) => [name, expected[name]])));
  return given.length === Object.keys(found).length;
}

const isReady = async (rest: RestClient) => (await rest("GET", "/health/ready")).status === 200;

/** Verifies until all verdicts are given in a row and the server is ready; if it must not be ready, until it is not. */
async function settles(rest: RestClient, ready = true): Promise<void> {
  for (let inARow = 0; inARow < 3; ) {
    const isRight = await neverWrong(rest);
    inARow = (await isReady(rest)) === ready && isRight === ready ? inARow + 1 : 0;
  }
}

/** Repeats a call until the server can answer it: behind a pooler, another session may still have the setting. */
async function answered(call: () => Promise<Answer>): Promise<Json> {
  for (;;) {
    const { status, body } = await call();
    // A list that is cancelled by a time limit.
    const isTooSlow = body?.error?.details[0].reason === "LIST_TOO_SLOW";
    if (status !== 500 && status !== 503 && !isTooSlow) return body;
  }
}

/** A change, with what it returns and what reads return then. */
async function changes(rest: RestClient): Promise<void> {
  const fields = { name: "ключ", actor_id: "actor_1", ttl: "1d", metadata: { città: "é" } };
  const { secret, issued_api_key: record } = await answered(() => rest("POST", paths.issued, fields));
  const { key_id: keyId } = record;
  expect(await answered(() => rest("GET", `${paths.issued}/${keyId}`))).toEqual(record);
  const filter = encodeURIComponent(`key_id=${keyId}`);
  const listed = await answered(() => rest("GET", `${paths.issued}?filter=${filter}`));
  expect(listed.issued_api_keys).toEqual([record]);
  await answered(() => rest("POST", `${paths.keys}/${keyId}:revoke`, { reason: "REVOCATION_REASON_SUPERSEDED" }));
  const verdict = await answered(() => rest("POST", `${paths.keys}:verify`, { credential: secret }));
  expect(verdict).toMatchObject({ is_valid: false, error_code: `${ERROR_PREFIX}REVOKED` });
}

const WHERE = { database: () => `DATABASE ${new URL(database.url).pathname.slice(1)}`, role: () => `ROLE ${role}` };

/** Sets it for new sessions until the test ends. */
async function setFor(where: keyof typeof WHERE, name: string, value: string): Promise<void> {
  const statement = `ALTER ${WHERE[where]()}`;
  onTestFinished(async () => void (await superuser.unsafe(`${statement} RESET ${name}`)));
  await superuser.unsafe(`${statement} SET ${name} = '${value}'`);
}

/** Ends the connections behind a pooler too. */
const endSessions = () => superuser`
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ${role} AND application_name <> 'keyhold feed'`;

describe("without a pooler", () => {
  let server: TestServer;
  let rest: RestClient;
  beforeAll(async () => {
    server = await startTestServer({ KEYHOLD_DATABASE_URL: database.url });
    rest = (...call) => restClient(server)(...call);
    await fill(rest);
    await settles(rest);
  });
  afterAll(() => server.close());

  describe.each(["database", "role"] as const)("by %s", (where) => {
    test.each(SETTINGS)("%s = %s", async (name, value) => {
      await setFor(where, name, value);
      if (REJECTED.includes(name)) {
        await endSessions();
        await settles(rest, false);
        if (name === "session_replication_role") expect(server.log()).toContain(`check ${name}`);
        await superuser.unsafe(`ALTER ${WHERE[where]()} RESET ${name}`);
      } else await server.restart();
      await settles(rest);
      await changes(rest);
    });
  });

  test.each(SETTINGS)("in mid-session, %s = %s", async (name, value) => {
    // Every session that reads or changes a key sets it.
    await superuser.unsafe(`
      ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
      CREATE POLICY foreign_setting ON api_keys USING (set_for_session('${name}', '${value}'))`);
    onTestFinished(async () => void (await superuser.unsafe("DROP POLICY IF EXISTS foreign_setting ON api_keys")));
    for (let round = 0; round < 3; round++) await neverWrong(rest);
    await rest("POST", paths.issued, { name: "a key", actor_id: "actor_1" });
    await superuser.unsafe(`
      DROP POLICY foreign_setting ON api_keys; ALTER TABLE api_keys DISABLE ROW LEVEL SECURITY`);
    await settles(rest);
    await changes(rest);
  });
});

describe.skipIf(!(await hasPgBouncer()))("behind PgBouncer (skipped unless pgbouncer is installed)", () => {
  const POOL_SIZE = 4;
  let pgbouncer: PgBouncer;
  let server: TestServer;
  let rest: RestClient;
  beforeAll(async () => {
    pgbouncer = await PgBouncer.start(inject("testDir"), database.url, POOL_SIZE);
    server = await startTestServer({
      ...{ KEYHOLD_DATABASE_URL: pgbouncer.url, KEYHOLD_DATABASE_LISTEN_URL: database.url },
    });
    rest = restClient(server);
    await fill(rest);
    await settles(rest);
  });
  afterAll(async () => {
    await server.close();
    await pgbouncer.stop();
  });

  describe.each(["database", "role"] as const)("by %s", (where) => {
    test.each(SETTINGS)("%s = %s", async (name, value) => {
      await setFor(where, name, value);
      await endSessions();
      if (REJECTED.includes(name)) {
        await settles(rest, false);
        await superuser.unsafe(`ALTER ${WHERE[where]()} RESET ${name}`);
        await endSessions();
      }
      await settles(rest);
      await changes(rest);
    });
  });

  test.each(SETTINGS)("in mid-session, %s = %s", async (name, value) => {
    // Transactions that overlap have different connections to the server, and leave the setting there. One message each: a time limit of
    // 1 ms applies to no further statement, nor does one that the test before has left.
    const clients = Array.from({ length: POOL_SIZE }, () => postgres(pgbouncer.url, { max: 1, fetch_types: false }));
    const { leaks } = await superuser.begin(async (sql) => {
      await sql`SELECT pg_advisory_xact_lock(1)`;
      const leak = `SET statement_timeout = 0; SET lock_timeout = 0;
        SELECT pg_advisory_xact_lock_shared(1); SET ${name} = '${value}'`;
      const leaks = clients.map((client) => client.unsafe(leak).simple().execute());
      const waiting = () => sql`SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory'`;
      await expect.poll(() => waiting().then(({ count }) => count)).toBe(POOL_SIZE);
      return { leaks };
    });
    await Promise.all(leaks);
    for (const client of clients) await client.end();
    if (REJECTED.includes(name)) {
      for (let round = 0; round < 10; round++) await neverWrong(rest);
      await endSessions();
    }
    await settles(rest);
    await changes(rest);
  });

  test.each(["statement_timeout", "lock_timeout"])(
    "a %s that is shorter than the opening of a session ends",
    async (name) => {
      const narrow = await PgBouncer.start(inject("testDir"), database.url, 1);
      const pool = new Pool({ url: narrow.url, maxConnections: 1, statementTimeout: 10_000, prepare: false });
      onTestFinished(async () => {
        await pool.close();
        await narrow.stop();
      });
      const client = postgres(narrow.url, { max: 1, fetch_types: false });
      await client.unsafe(`SET ${name} = '500ms'`);
      await client.end();
      const { run } = await superuser.begin(async (sql) => {
        // The opening statement reads it.
        await sql`LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE`;
        const run = pool.run((own) => own`SELECT current_setting(${name}) AS value`);
        run.catch(() => undefined);
        // The other server waits too.
        const waiting = () => sql`
          SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND application_name = 'keyhold'`;
        await expect.poll(() => waiting().then(({ count }) => count)).toBe(1);
        // Longer than the time limit that was left; opening a session takes at most 5 s in all.
        await sql`SELECT pg_sleep(0.6)`;
        return { run };
      });
      expect((await run)[0]?.value).toBe(name === "lock_timeout" ? "0" : "10s");
    },
  );
});

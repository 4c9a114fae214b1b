import { createServer } from "node:net";
import { inspect } from "node:util";
import { pino } from "pino";
import type { Sql } from "postgres";
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { KeyholdError } from "../../src/domain/errors.ts";
import { databaseError } from "../../src/postgres/connection/errors.ts";
import { openPrimary } from "../../src/postgres/connection/primary.ts";
import { table } from "../support/conformance.ts";
import { connect } from "../support/driver-client.ts";
import { listenLocally } from "../support/listen.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";

const OPTIONS = { statementTimeout: 300, prepare: true };
const CANNOT_BE_REACHED = { code: "DATABASE_UNAVAILABLE", message: "the database is unreachable" };
const TOO_LATE = { code: "DATABASE_UNAVAILABLE", message: "the database did not respond in time" };

let database: TestDatabase;
let sql: Sql;
beforeAll(async () => {
  database = await createTestDatabase();
});
beforeEach(() => {
  sql = connect({ ...OPTIONS, url: database.url });
});
afterEach(() => sql.end({ timeout: 0 }));
afterAll(() => database.drop());

/** Returns the error of a statement as callers see it. */
async function failureOf(statement: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(statement).then(() => "no failure", databaseError);
}

test("a statement whose backend is killed is DATABASE_UNAVAILABLE with its cause", async () => {
  const [row] = await sql`SELECT pg_backend_pid() AS pid`;
  const killed = failureOf(sql`SELECT pg_terminate_backend(${row?.pid}), pg_sleep(0.2)`);
  expect(await killed).toMatchObject({ ...CANNOT_BE_REACHED, cause: { code: expect.any(String) } });
});

test("a statement cancelled by its timeout is DATABASE_UNAVAILABLE", async () => {
  expect(await failureOf(sql`SELECT pg_sleep(10)`)).toMatchObject({ ...TOO_LATE, cause: { code: "57014" } });
});

const UNREACHABLE = table([
  ["refuses connections", "postgres://user:pass@127.0.0.1:1/none"],
  ["has a name that does not resolve", "postgres://user:pass@nowhere.invalid/none"],
  ["has no socket", "postgres://user@%2Fnowhere/none"],
] as const);

test.each(UNREACHABLE)(
  "a database that %s is DATABASE_UNAVAILABLE, repeatedly and without a long wait",
  async (_, url) => {
    const began = performance.now();
    for (let attempt = 0; attempt < 8; attempt++) {
      expect(await failureOf(openPrimary({ ...OPTIONS, url }).ready)).toMatchObject(CANNOT_BE_REACHED);
    }
    expect(performance.now() - began).toBeLessThan(5_000);
  },
);

test("a connection that is accepted and closed at once is DATABASE_UNAVAILABLE", async () => {
  const proxy = createServer((socket) => void socket.on("error", () => {}).end());
  const client = connect({ ...OPTIONS, url: `postgres://user@127.0.0.1:${await listenLocally(proxy)}/none` });
  onTestFinished(async () => {
    await client.end({ timeout: 0 });
    proxy.close();
  });
  expect(await failureOf(client`SELECT 1`)).toMatchObject({ ...CANNOT_BE_REACHED, cause: { code: "ECONNRESET" } });
});

test.each(["EINVAL", "EBADF", "ERR_INVALID_ARG_TYPE"])(
  "an error of Node with the code %s is no outage of the database",
  (code) => {
    const error = Object.assign(new Error("a bug"), { code });
    expect(databaseError(error)).toBe(error);
  },
);

const REJECTED_LOGINS = table([
  ["password", "28P01", (url: URL) => Object.assign(url, { password: "wrong" })],
  ["role", "28P01", (url: URL) => Object.assign(url, { username: "nobody" })],
  ["database", "3D000", (url: URL) => Object.assign(url, { pathname: "/nowhere" })],
] as const);

test.each(REJECTED_LOGINS)("a wrong %s is DATABASE_UNAVAILABLE with the database's message", async (_, code, spoil) => {
  const stranger = connect({ ...OPTIONS, url: spoil(new URL(database.url)).href });
  expect(await failureOf(stranger`SELECT 1`)).toMatchObject({
    code: "DATABASE_UNAVAILABLE",
    message: "the database rejected the login",
    cause: { code },
  });
  await stranger.end({ timeout: 0 });
});

/** SQLSTATE (PostgreSQL, appendix A), and whether it is an outage of the database or an error of Keyhold. */
const STATES = table([
  ["connection_failure", "08006", CANNOT_BE_REACHED],
  ["read_only_sql_transaction", "25006", CANNOT_BE_REACHED],
  ["serialization_failure", "40001", CANNOT_BE_REACHED],
  ["deadlock_detected", "40P01", CANNOT_BE_REACHED],
  ["disk_full", "53100", CANNOT_BE_REACHED],
  ["too_many_connections", "53300", CANNOT_BE_REACHED],
  ["query_canceled", "57014", TOO_LATE],
  ["admin_shutdown", "57P01", CANNOT_BE_REACHED],
  ["crash_shutdown", "57P02", CANNOT_BE_REACHED],
  ["cannot_connect_now", "57P03", CANNOT_BE_REACHED],
  ["division_by_zero", "22012", { code: "22012" }],
  ["unique_violation", "23505", { code: "23505" }],
  ["undefined_table", "42P01", { message: expect.stringContaining("check search_path"), cause: { code: "42P01" } }],
  ["database_dropped", "57P04", { code: "57P04" }],
  ["internal_error", "XX000", { code: "XX000" }],
] as const);

test.each(STATES)("%s (%s) maps to the error for callers", async (_, state, expected) => {
  const raise = sql.unsafe(`DO $$ BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = '${state}'; END $$`);
  expect(await failureOf(raise)).toMatchObject(expected);
});

test("a KeyholdError passes unchanged", async () => {
  const ours = [new KeyholdError("API_KEY_NOT_FOUND", "no"), new TypeError("a fault"), "no error at all"];
  for (const error of ours) expect(await failureOf(Promise.reject(error))).toBe(error);
});

const ARRAYS = table([
  [[]],
  [["one"]],
  [["keys.read", "keys:write"]],
  [["", " ", "NULL", "null"]],
  [["{}", "{a,b}", ",", '"', '""', "\\", '\\"', "a\\b"]],
  [["'", "\n", "\t", "ß", "日本", "\u{1f511}"]],
]);

test.each(ARRAYS)("a text array is stored and read unchanged: %j", async (items) => {
  const [row] = await sql`SELECT ${items}::text[] AS items, cardinality(${items}::text[]) AS count`;
  expect(row).toEqual({ items, count: items.length });
});

const SECRET = "actor-of-nobody-else";

/** Statements whose error has the value in its details, its context, or both. */
const REVEALING = table([
  ["a duplicate", "CREATE TEMP TABLE t (actor text UNIQUE); INSERT INTO t VALUES ('$'), ('$')"],
  ["a failing row", "CREATE TEMP TABLE t (actor text, n int NOT NULL); INSERT INTO t VALUES ('$', NULL)"],
  ["a trigger", "DO $$ BEGIN RAISE EXCEPTION 'as asked' USING DETAIL = '$', HINT = '$', COLUMN = '$'; END $$"],
  ["a query of a function", "DO $$ BEGIN EXECUTE 'SELECT 1 / 0 FROM (VALUES (''$'')) AS x'; END $$"],
] as const);

test.each(REVEALING)("what is logged of an error has no value: %s", async (_, statement) => {
  const failure = await failureOf(sql.unsafe(statement.replaceAll(/\$(?!\$|[ ;])(?<!\$\$)/g, SECRET)));
  expect(inspect(failure, { showHidden: true })).toContain(SECRET);
  const lines: string[] = [];
  pino({ serializers: {} }, { write: (line) => void lines.push(line) }).error({ err: failure }, "fault");
  expect(lines.join("")).not.toContain(SECRET);
  expect(JSON.parse(lines.join("")).err).toMatchObject({ code: expect.stringMatching(/^[0-9A-Z]{5}$/) });
});

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import postgres, { type Sql } from "postgres";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { type Serving, serve } from "../support/keyhold.ts";
import { linesOf } from "../support/log-lines.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import type { Json } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";

/** Signals on which a process with `PRELOAD` throws or rejects a promise. */
export const THROW = "SIGUSR2";
export const REJECT = "SIGHUP";

const PRELOAD = pathToFileURL(resolve(import.meta.dirname, "../support/throw-on-signal.ts"));

/** Environment of a process that throws on a signal. */
export const THROWS_ON_SIGNAL = { NODE_OPTIONS: `--import=${PRELOAD.href}` };

/** Servers that throw on a signal, on one database for a test file. */
export interface ThrowingServers {
  /** The database as its owner. Available within tests only. */
  readonly sql: Sql;
  /** Starts a server, and returns the URL of its metrics too. It is killed when the test ends. */
  start(environment?: Record<string, string>): Promise<{ server: Serving; metrics: string }>;
  /** Returns the number of leases. */
  nodes(): Promise<number>;
}

export function useThrowingServers(): ThrowingServers {
  let database: TestDatabase;
  let sql: Sql;
  beforeAll(async () => {
    database = await createTestDatabase();
    sql = postgres(database.ownerUrl, { max: 2 });
  });
  afterAll(async () => {
    await sql.end();
    await database.drop();
  });
  return {
    get sql() {
      return sql;
    },
    start: async (environment = {}) => {
      const server = await serve({
        KEYHOLD_DATABASE_URL: database.url,
        KEYHOLD_ROOT_SECRET: ROOT_SECRET,
        KEYHOLD_METRICS_PORT: "0",
        ...THROWS_ON_SIGNAL,
        ...environment,
      });
      onTestFinished(async () => {
        server.kill("SIGKILL");
        await server.ended;
      });
      return { server, metrics: (await server.logged(`Keyhold is listening on ${server.url}`)).metrics };
    },
    nodes: async () => Number((await sql`SELECT count(*) AS count FROM nodes`)[0]?.count),
  };
}

/** Returns the log lines about uncaught exceptions. */
export const uncaughtLines = (stdout: string): Json[] => linesOf(stdout).filter(({ level }) => level === 60);

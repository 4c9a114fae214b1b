import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { type Serving, serve } from "./keyhold.ts";
import { createTestDatabase, type TestDatabase } from "./postgres.ts";
import { ROOT_SECRET } from "./server.ts";

/** The server in a separate process, for a test file that may end it. */
export interface ServerProcess {
  readonly url: string;
  readonly port: number;
  readonly databaseOwnerUrl: string;
  /** Fails with the output of the process if it has exited or does not serve. */
  expectAlive(): Promise<void>;
}

/** Starts the server before the tests of the file, and again before a test if it has exited. */
export function useServerProcess(environment: Record<string, string> = {}): ServerProcess {
  let database: TestDatabase;
  let server: Serving | undefined;
  let ended: string | undefined;
  const start = async () => {
    ended = undefined;
    server = await serve({
      KEYHOLD_DATABASE_URL: database.url,
      KEYHOLD_ROOT_SECRET: ROOT_SECRET,
      KEYHOLD_FAST_PATH: process.env.KEYHOLD_FAST_PATH ?? "on",
      ...environment,
    });
    void server.ended.then(({ code, signal, stderr }) => {
      ended = `the server exited (${signal ?? code}): ${stderr}`;
    });
  };
  const url = () => server?.url ?? "";
  beforeAll(async () => {
    database = await createTestDatabase();
    await start();
  });
  beforeEach(async () => {
    if (await isAlive(url())) return;
    await server?.ended;
    await start();
  });
  afterAll(async () => {
    server?.kill("SIGKILL");
    await server?.ended;
    await database?.drop();
  });
  return {
    get url() {
      return url();
    },
    get port() {
      return Number(new URL(url()).port);
    },
    get databaseOwnerUrl() {
      return database.ownerUrl;
    },
    expectAlive: async () => {
      if (!(await isAlive(url()))) await server?.ended;
      expect(ended).toBe(undefined);
    },
  };
}

async function isAlive(url: string): Promise<boolean> {
  const answered = await fetch(`${url}/health/alive`, { signal: AbortSignal.timeout(10_000) }).catch(() => undefined);
  return answered?.status === 200;
}

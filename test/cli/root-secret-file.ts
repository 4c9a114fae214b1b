import { chmod, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject } from "vitest";
import { type Ended, runKeyhold, type Serving, serve } from "../support/keyhold.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { type RestClient, restClient } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";

/** A server with its own database and root secret file, in a process, and the command with the same environment. */
export interface RootSecretFile {
  /** Available within tests only, like the rest. */
  readonly path: string;
  environment(): { KEYHOLD_DATABASE_URL: string; KEYHOLD_ROOT_SECRET_FILE: string };
  readonly rest: RestClient;
  keyhold(...args: string[]): Promise<Ended>;
  /** Returns the secrets in the file. */
  secrets(): Promise<string[]>;
  /** Expects that output contains no secret. */
  expectNoSecret(ended: Ended): Promise<void>;
  /** Stops the server gracefully. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** Starts the server, with these settings, before the tests of the file and stops it after them. */
export function useRootSecretFile(settings: Record<string, string> = {}): RootSecretFile {
  let database: TestDatabase;
  let path: string;
  let server: Serving;
  const environment = () => ({ KEYHOLD_DATABASE_URL: database.url, KEYHOLD_ROOT_SECRET_FILE: path });
  const secrets = async () => (await readFile(path, "utf8")).trimEnd().split("\n");
  const start = async () => {
    server = await serve({ ...environment(), ...settings });
  };
  const end = async (signal: "SIGTERM" | "SIGKILL") => {
    server.kill(signal);
    await server.ended;
  };
  beforeAll(async () => {
    database = await createTestDatabase();
    path = join(await mkdtemp(join(inject("testDir"), "secrets-")), "root-secret");
    await writeFile(path, `${ROOT_SECRET}\n`, { mode: 0o640 });
    await chmod(path, 0o640);
    await start();
  });
  afterAll(async () => {
    await end("SIGKILL");
    await database.drop();
  });
  return {
    get path() {
      return path;
    },
    environment,
    rest: (...request) => restClient(server)(...request),
    keyhold: (...args) => runKeyhold(args, environment()),
    secrets,
    expectNoSecret: async ({ stdout, stderr }) => {
      for (const secret of await secrets()) expect(stdout + stderr).not.toContain(secret);
    },
    stop: () => end("SIGTERM"),
    start,
  };
}

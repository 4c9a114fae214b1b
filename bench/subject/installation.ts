import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import postgres, { type Sql } from "postgres";
import { startEmbeddedPostgres } from "../../src/embedded-postgres/embedded.ts";
import { WITHOUT_OWN_LIMITS } from "../../test/support/own-limits.ts";
import { socketOptions } from "../../test/support/socket-options.ts";
import type { Fixture } from "../harness/fixture.ts";
import type { Cores } from "../harness/pinning.ts";
import { type ServerProcess, startServer } from "../harness/server.ts";

/** The service as users run it: `keyhold serve` with default settings and its own data directory. */
export interface Installation {
  readonly dataDir: string;
  readonly server: ServerProcess;
  /** URL of the database as its owner, for the harness and the baselines; see `socketOptions`. */
  readonly databaseUrl: string;
  /** URL for servers, whose role may not change the schema. */
  readonly serverUrl: string;
  readonly superuserUrl: string;
  /** The process id of PostgreSQL, which the server restarts when it exits. */
  readonly databasePid: number;
}

/** Returns the path of the command `keyhold` in the measured checkout. */
export function programOf({ checkout }: Pick<Fixture, "checkout">): string {
  return join(checkout, "src/cli/keyhold.js");
}

export interface InstallOptions {
  /** Program to run instead of `keyhold serve`; it reads the same variables and serves `/health/ready`. */
  readonly script?: readonly string[];
  /** Data folder of an earlier installation; default: a new one. */
  readonly dataDir?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Starts an installation. PostgreSQL runs on the core of the load, where baselines use it too. */
export async function install(fixture: Fixture, options: InstallOptions = {}): Promise<Installation> {
  const { dataDir = join(fixture.dir, randomUUID()), environment = {}, script } = options;
  const server = await startKeyhold(fixture, dataDir, environment, "server", script);
  const database = await startEmbeddedPostgres({ dataDir, log: () => {}, ifRunning: "attach" });
  await moveToLoad(fixture, database.pid);
  const { url: databaseUrl, serverUrl, superuserUrl, pid: databasePid } = database;
  return { dataDir, server, databaseUrl, serverUrl, superuserUrl, databasePid };
}

/** Starts a server, and resolves when it is ready. Its embedded PostgreSQL runs on the same cores. */
export function startKeyhold(
  fixture: Fixture,
  dataDir: string,
  environment: Readonly<Record<string, string>> = {},
  cores: Cores = "server",
  script: readonly string[] = [programOf(fixture), "serve"],
): Promise<ServerProcess> {
  return startServer(fixture, {
    command: [process.execPath, ...script],
    // All clients of a benchmark have the same address.
    environment: {
      KEYHOLD_DATA_DIR: dataDir,
      KEYHOLD_METRICS_PORT: "0",
      ...WITHOUT_OWN_LIMITS,
      ...environment,
    },
    portVariable: "KEYHOLD_PORT",
    readyPath: "/health/ready",
    cores,
  });
}

/** Moves the postmaster first, since a child inherits the cores of its parent. */
async function moveToLoad({ pinning }: Fixture, postmaster: number): Promise<void> {
  pinning.move("load", postmaster);
  for (const pid of await childrenOf(postmaster)) pinning.move("load", pid);
}

async function childrenOf(parent: number): Promise<number[]> {
  const pids = (await readdir("/proc")).map(Number).filter(Number.isInteger);
  const parents = await Promise.all(pids.map(async (pid) => ({ pid, parent: await parentOf(pid) })));
  return parents.flatMap((one) => (one.parent === parent ? [one.pid] : []));
}

async function parentOf(pid: number): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const [, parent] = /^PPid:\t(\d+)$/m.exec(status) ?? [];
  return parent === undefined ? undefined : Number(parent);
}

/** Opens a client of the database for the harness, closed with the fixture. */
export function databaseOf(fixture: Fixture, { databaseUrl }: Pick<Installation, "databaseUrl">): Sql {
  const sql = postgres(databaseUrl, { ...socketOptions(databaseUrl), max: 2, onnotice: () => {} });
  fixture.onClose(() => sql.end());
  return sql;
}

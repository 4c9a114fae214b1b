import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import postgres, { type Sql } from "postgres";
import { startEmbeddedPostgres } from "../../src/embedded-postgres/embedded.ts";
import { socketOptions } from "../../test/support/socket-options.ts";
import type { Cores } from "../harness/pinning.ts";
import { type ServerProcess, startServer } from "../harness/server.ts";
import type { Stage } from "../harness/stage.ts";

/** The service as it is installed: `keyhold serve` with its defaults, and a data folder of its own. */
export interface Installation {
  readonly dataDir: string;
  readonly server: ServerProcess;
  /** Of its database, as its owner, for the harness and the baselines; as `socketOptions` takes it. */
  readonly databaseUrl: string;
  /** The same for servers, which may not change the schema. */
  readonly serverUrl: string;
  readonly superuserUrl: string;
  /** The process of PostgreSQL, which the server starts again when it ends. */
  readonly databasePid: number;
}

/** Returns the command `keyhold` of the checkout that is measured. */
export function programOf({ checkout }: Pick<Stage, "checkout">): string {
  return join(checkout, "src/cli/keyhold.js");
}

export interface InstallOptions {
  /** What Node runs instead of `keyhold serve`: a program that takes the same variables and answers at `/health/ready`. */
  readonly script?: readonly string[];
  /** Folder of an earlier installation; by default a new one is created. */
  readonly dataDir?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Starts it. PostgreSQL goes to the core of the load, where baselines find it too. */
export async function install(stage: Stage, options: InstallOptions = {}): Promise<Installation> {
  const { dataDir = join(stage.dir, randomUUID()), environment = {}, script } = options;
  const server = await startKeyhold(stage, dataDir, environment, "server", script);
  const database = await startEmbeddedPostgres({ dataDir, log: () => {}, ifRunning: "attach" });
  await moveToLoad(stage, database.pid);
  const { url: databaseUrl, serverUrl, superuserUrl, pid: databasePid } = database;
  return { dataDir, server, databaseUrl, serverUrl, superuserUrl, databasePid };
}

/** Resolves when it is ready. Its PostgreSQL runs where it does. */
export function startKeyhold(
  stage: Stage,
  dataDir: string,
  environment: Readonly<Record<string, string>> = {},
  cores: Cores = "server",
  script: readonly string[] = [programOf(stage), "serve"],
): Promise<ServerProcess> {
  return startServer(stage, {
    command: [process.execPath, ...script],
    // All clients of a benchmark have one address.
    environment: { KEYHOLD_DATA_DIR: dataDir, KEYHOLD_METRICS_PORT: "0", KEYHOLD_PUBLIC_RATE: "off", ...environment },
    portVariable: "KEYHOLD_PORT",
    readyPath: "/health/ready",
    cores,
  });
}

/** What a moved process forks is born where it was moved to, so the postmaster goes first. */
async function moveToLoad({ pinning }: Stage, postmaster: number): Promise<void> {
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

/** A client of the database for the harness itself, which is closed with the stage. */
export function databaseOf(stage: Stage, { databaseUrl }: Pick<Installation, "databaseUrl">): Sql {
  const sql = postgres(databaseUrl, { ...socketOptions(databaseUrl), max: 2, onnotice: () => {} });
  stage.onClose(() => sql.end());
  return sql;
}

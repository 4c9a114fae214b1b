import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { KeyholdError } from "../domain/errors.ts";
import { syncDir } from "../lib/sync-dir.ts";
import type { Binaries } from "./binaries.ts";
import type { OsUsers } from "./os-user.ts";
import { changeOwner, changeOwnerOfTree } from "./ownership.ts";
import { describeProcess, runProgram } from "./process.ts";

/** The database, the role that owns it and migrates its schema, and the role of the servers, which may not. */
export const database = "keyhold";
export const owner = "keyhold";
export const serverRole = "keyhold_server";
export const superuser = "postgres";

/** Returns the folder of PostgreSQL's files within the data directory. */
export function clusterDirOf(dataDir: string): string {
  return join(dataDir, "postgres");
}

/** No password: the socket is in a private folder, and a user who can enter it can read the files as well. */
const initdbArguments: readonly string[] = [
  `--username=${superuser}`,
  "--auth-local=trust",
  "--auth-host=reject",
  "--encoding=UTF8",
  "--locale=C",
  "--locale-provider=builtin",
  "--builtin-locale=C.UTF-8",
  "--data-checksums",
];

const bootstrapSql = `CREATE ROLE ${owner} LOGIN;
CREATE ROLE ${serverRole} LOGIN;
CREATE DATABASE ${database} OWNER ${owner};
REVOKE ALL ON DATABASE ${database} FROM PUBLIC;
`;

/**
 * Initializes the cluster if there is none, roles and database included. It is built in a sibling folder and then renamed, so a crash
 * leaves no incomplete cluster.
 */
export async function ensureCluster(
  dataDir: string,
  { server, initializer }: OsUsers,
  binaries: Binaries,
): Promise<void> {
  await removeUnfinished(dataDir);
  if (isInitialized(dataDir)) return;
  await assertFree(clusterDirOf(dataDir));
  const newDir = `${clusterDirOf(dataDir)}.init-${process.pid}`;
  try {
    await mkdir(newDir, { mode: 0o700 });
    await changeOwner(newDir, initializer);
    await runProgram(initializer, [binaries.initdb, ...initdbArguments, `--pgdata=${newDir}`]);
    const single = [binaries.postgres, "--single", "-D", newDir, "-c", "exit_on_error=on", "postgres"];
    await runProgram(initializer, single, bootstrapSql);
    await changeOwnerOfTree(newDir, server);
    // If another process was first, its cluster is kept.
    await rename(newDir, clusterDirOf(dataDir)).catch((error) => {
      if (!isInitialized(dataDir)) throw error;
    });
    await syncDir(dataDir);
  } finally {
    await rm(newDir, { recursive: true, force: true });
  }
}

function isInitialized(dataDir: string): boolean {
  return existsSync(join(clusterDirOf(dataDir), "PG_VERSION"));
}

async function assertFree(clusterDir: string): Promise<void> {
  const names = await readdir(clusterDir).catch(() => []);
  if (names.length === 0) return;
  throw new KeyholdError(
    "DATABASE_UNAVAILABLE",
    `${clusterDir} contains files that are not PostgreSQL data: move them to another directory`,
  );
}

/** Removes folders that processes which have ended were initializing. One with our own process id is an earlier process's: ids are reused. */
async function removeUnfinished(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    const pid = Number(/^postgres\.init-(\d+)$/.exec(name)?.[1] ?? Number.NaN);
    if (Number.isNaN(pid)) continue;
    if (pid === process.pid || (await describeProcess(pid)) === undefined)
      // A child of that process may still write there.
      await rm(join(dataDir, name), { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  }
}

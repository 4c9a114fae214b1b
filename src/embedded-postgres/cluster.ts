import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { KeyholdError } from "../domain/errors.ts";
import type { Binaries } from "./binaries.ts";
import type { OsUsers } from "./os-user.ts";
import { give, giveTree } from "./ownership.ts";
import { describeProcess } from "./process.ts";
import { runProgram } from "./spawn.ts";

/** The database, the role that owns it and changes its schema, and the one that serves and may not. */
export const database = "keyhold";
export const owner = "keyhold";
export const serverRole = "keyhold_server";
export const superuser = "postgres";

/** Where PostgreSQL's own files are in Keyhold's data folder. */
export function clusterDirOf(dataDir: string): string {
  return join(dataDir, "postgres");
}

/** No password: the socket is in a private folder, and whoever may enter that can read the files as well. */
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
 * Makes the cluster unless it is there. It is made whole, role and database included, in a folder beside it and then
 * renamed, so that a crash leaves nothing half done under the real name.
 */
export async function ensureCluster(
  dataDir: string,
  { server, initializer }: OsUsers,
  binaries: Binaries,
): Promise<void> {
  await clearHalfMade(dataDir);
  if (await isMade(dataDir)) return;
  await assertFree(clusterDirOf(dataDir));
  const draft = `${clusterDirOf(dataDir)}.init-${process.pid}`;
  try {
    await mkdir(draft, { mode: 0o700 });
    await give(draft, initializer);
    await runProgram(initializer, [binaries.initdb, ...initdbArguments, `--pgdata=${draft}`], "");
    const single = [binaries.postgres, "--single", "-D", draft, "-c", "exit_on_error=on", "postgres"];
    await runProgram(initializer, single, bootstrapSql);
    await giveTree(draft, server);
    await publish(draft, dataDir);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

async function isMade(dataDir: string): Promise<boolean> {
  return stat(join(clusterDirOf(dataDir), "PG_VERSION")).then(
    () => true,
    () => false,
  );
}

async function assertFree(clusterDir: string): Promise<void> {
  const names = await readdir(clusterDir).catch(() => []);
  if (names.length === 0) return;
  throw new KeyholdError(
    "DATABASE_UNAVAILABLE",
    `${clusterDir} holds something else than PostgreSQL data: move it away`,
  );
}

/** Another process may have been first: then its cluster stands. */
async function publish(draft: string, dataDir: string): Promise<void> {
  await rename(draft, clusterDirOf(dataDir)).catch(async (error) => {
    if (!(await isMade(dataDir))) throw error;
  });
  await syncDir(dataDir);
}

/** A new name in a folder is durable only after the folder itself is (fsync(2)). */
export async function syncDir(dir: string): Promise<void> {
  const handle = await open(dir, "r");
  await handle.sync().finally(() => handle.close());
}

/** Removes the drafts of processes that have gone. One under our own number is an earlier process's: numbers come again. */
async function clearHalfMade(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    const pid = Number(/^postgres\.init-(\d+)$/.exec(name)?.[1] ?? Number.NaN);
    if (Number.isNaN(pid)) continue;
    if (pid === process.pid || (await describeProcess(pid)) === undefined)
      // What that process had started may still write there, until it finds the folder gone.
      await rm(join(dataDir, name), { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  }
}

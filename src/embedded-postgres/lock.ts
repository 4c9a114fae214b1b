import { rm } from "node:fs/promises";
import { KeyholdError } from "../domain/errors.ts";
import type { LockOwner } from "./lock-owner.ts";
import { findLockOwner } from "./lock-owner.ts";
import type { Log } from "./log.ts";
import { endOrphanedBackends } from "./orphans.ts";
import { pidFilePath, readPidFile } from "./pid-file.ts";
import { describeProcess, untilGone } from "./process.ts";
import { shutDown } from "./shutdown.ts";

/** A running owner of the cluster that keeps it. */
export type OtherOwner = Extract<LockOwner, { readonly kind: "keyhold" | "foreign" }>;

/**
 * Removes what a killed predecessor left in the cluster. Returns the other owner, and changes nothing, if the cluster is in use.
 *
 * @throws KeyholdError `DATABASE_UNAVAILABLE` when a server that should stop does not.
 */
export async function acquireLock(clusterDir: string, log: Log): Promise<OtherOwner | undefined> {
  const owner = await findLockOwner(clusterDir);
  if (owner.kind === "keyhold" || owner.kind === "foreign") return owner;
  if (owner.kind === "orphan") await stopOrphan(owner.pid, clusterDir, log);
  await removeStaleFiles(clusterDir);
  return undefined;
}

/** Deleting `postmaster.pid` while its server runs would allow a second server, and the two would corrupt the data. */
async function stopOrphan(pid: number, clusterDir: string, log: Log): Promise<void> {
  log("warn", `stopping PostgreSQL process ${pid}, left running by a Keyhold process that was killed`);
  const over = new AbortController();
  await shutDown(pid, clusterDir, untilGone(pid, over.signal)).finally(() => over.abort());
  if (await describeProcess(pid))
    throw new KeyholdError("DATABASE_UNAVAILABLE", `PostgreSQL process ${pid} does not end`);
}

/** A server that shut down cleanly leaves no `postmaster.pid`. */
async function removeStaleFiles(clusterDir: string): Promise<void> {
  const file = await readPidFile(clusterDir);
  if (file === undefined) return;
  await endOrphanedBackends(clusterDir);
  if (isInUse(file.pid)) await rm(pidFilePath(clusterDir), { force: true });
}

/** PostgreSQL detects an unused process id itself, but not one that another program has reused. */
function isInUse(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

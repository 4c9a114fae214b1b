import { rm } from "node:fs/promises";
import { KeyholdError } from "../domain/errors.ts";
import type { LockOwner } from "./lock-owner.ts";
import { findLockOwner } from "./lock-owner.ts";
import type { Log } from "./log.ts";
import { endOrphanedBackends } from "./orphans.ts";
import { pidFilePath, readPidFile } from "./pid-file.ts";
import { describeProcess, untilGone } from "./process.ts";
import { shutDown } from "./shutdown.ts";

/** A living holder of the cluster whose right must be respected. */
export type OtherOwner = Extract<LockOwner, { readonly kind: "keyhold" | "stranger" }>;

/**
 * Clears away what a killed predecessor left on the cluster. Returns the rival instead if the cluster is rightly held.
 *
 * @throws KeyholdError `DATABASE_UNAVAILABLE` when a server that should stop does not.
 */
export async function acquireLock(clusterDir: string, log: Log): Promise<OtherOwner | undefined> {
  const holder = await findLockOwner(clusterDir);
  if (holder.kind === "keyhold" || holder.kind === "stranger") return holder;
  if (holder.kind === "orphan") await stopOrphan(holder.pid, clusterDir, log);
  await clearRemains(clusterDir);
  return undefined;
}

/** To delete `postmaster.pid` under a living server would let a second one in, and both would destroy the data. */
async function stopOrphan(pid: number, clusterDir: string, log: Log): Promise<void> {
  log("warn", `stopping PostgreSQL process ${pid}, which a Keyhold that was killed left running`);
  const over = new AbortController();
  await shutDown(pid, clusterDir, untilGone(pid, over.signal)).finally(() => over.abort());
  if (await describeProcess(pid))
    throw new KeyholdError("DATABASE_UNAVAILABLE", `PostgreSQL process ${pid} does not end`);
}

/** A server that ended in good order leaves no `postmaster.pid`. */
async function clearRemains(clusterDir: string): Promise<void> {
  const file = await readPidFile(clusterDir);
  if (file === undefined) return;
  await endOrphanedBackends(clusterDir);
  if (isTaken(file.pid)) await rm(pidFilePath(clusterDir), { force: true });
}

/** PostgreSQL itself sees that a number is unused, but not that another program has it by now. */
function isTaken(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

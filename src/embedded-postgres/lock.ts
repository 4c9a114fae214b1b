import { readdir, rm, stat } from "node:fs/promises";
import { KeyholdError } from "../domain/errors.ts";
import { pidFilePath, readPidFile } from "./pid-file.ts";
import { type Log, ownerMark } from "./postmaster.ts";
import { describeProcess, poll, signalProcess, untilGone } from "./process.ts";
import { shutDown } from "./shutdown.ts";
import { answers } from "./socket.ts";

/** The process that uses a cluster, by its `postmaster.pid` and the processes that run. */
type LockOwner =
  /** None; an existing `postmaster.pid` names a process that is not this cluster's server. */
  | { readonly kind: "none" }
  /** A server whose Keyhold process has ended. */
  | { readonly kind: "orphan"; readonly pid: number }
  /** A server of the running Keyhold process `owner`. */
  | { readonly kind: "keyhold"; readonly pid: number; readonly owner: number }
  /** A server that Keyhold did not start, or that runs in another container and cannot be inspected. */
  | { readonly kind: "foreign"; readonly pid: number };

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

/** Until the kernel has removed it, a killed process still accepts connections but has no command line. */
const exitDelayMs = 1_000;

/** Returns the process that uses the cluster. Rejects only if its files cannot be read. */
function findLockOwner(clusterDir: string): Promise<LockOwner> {
  const findKnown = async () => {
    const owner = await inspect(clusterDir);
    return owner.kind === "foreign" ? undefined : owner;
  };
  return poll(findKnown, AbortSignal.timeout(exitDelayMs)).catch(() => inspect(clusterDir));
}

async function inspect(clusterDir: string): Promise<LockOwner> {
  const file = await readPidFile(clusterDir);
  if (file === undefined) return { kind: "none" };
  const { pid, socketDir } = file;
  const found = await describeProcess(pid);
  if (found !== undefined && (await serves(pid, found.command, clusterDir))) {
    const owner = found.command.split(ownerMark)[1];
    if (owner === undefined) return { kind: "foreign", pid };
    const isRunning = Number.parseInt(owner, 10) === found.parent;
    return isRunning ? { kind: "keyhold", pid, owner: found.parent } : { kind: "orphan", pid };
  }
  if (socketDir !== undefined && (await answers(socketDir))) return { kind: "foreign", pid };
  return { kind: "none" };
}

/** The working directory of a server is its data folder, whatever its path. Where it cannot be read, the command line decides. */
async function serves(pid: number, command: string, clusterDir: string): Promise<boolean> {
  return (await worksIn(pid, clusterDir)) ?? command.includes(`-D ${clusterDir} `);
}

/**
 * Returns whether the folder is the working directory of the process; undefined if that cannot be read: without /proc, or for
 * another user's process without CAP_SYS_PTRACE, which root lacks in most containers (proc(5)).
 */
export async function worksIn(pid: number, dir: string): Promise<boolean | undefined> {
  if (process.platform !== "linux") return undefined;
  try {
    const [theirs, ours] = await Promise.all([stat(`/proc/${pid}/cwd`), stat(dir)]);
    return theirs.dev === ours.dev && theirs.ino === ours.ino;
  } catch (error) {
    return ["EACCES", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "") ? undefined : false;
  }
}

/**
 * Terminates the server processes of a cluster whose postmaster was killed. A busy one notices that only when its query ends, and
 * blocks the start of a new server until then. SIGQUIT ends it at once; what it committed is in the WAL. If one stays, PostgreSQL
 * refuses to start with a message of its own. Call it when no postmaster uses the cluster. Without /proc it does nothing.
 */
async function endOrphanedBackends(clusterDir: string): Promise<void> {
  const pids = (await readdir("/proc").catch(() => [])).map(Number).filter(Number.isInteger);
  const limit = AbortSignal.timeout(10_000);
  await Promise.all(
    pids.map(async (pid) => {
      if (!(await isOrphanedBackend(pid, clusterDir))) return;
      signalProcess(pid, "SIGQUIT");
      await untilGone(pid, limit).catch(() => undefined);
    }),
  );
}

/** Server processes set their title, such as `postgres: keyhold-17: checkpointer`; a shell in that folder has another. */
async function isOrphanedBackend(pid: number, clusterDir: string): Promise<boolean> {
  const found = await describeProcess(pid);
  if (found === undefined || !found.command.startsWith("postgres: ")) return false;
  return (await worksIn(pid, clusterDir)) === true && (await worksIn(found.parent, clusterDir)) !== true;
}

import { readdir, rm, stat } from "node:fs/promises";
import { KeyholdError } from "../domain/errors.ts";
import { pidFilePath, readPidFile } from "./pid-file.ts";
import { type Log, ownerMark } from "./postmaster.ts";
import { describeProcess, poll, signalProcess, untilGone } from "./process.ts";
import { shutDown } from "./shutdown.ts";
import { answers } from "./socket.ts";

/** The server that uses a cluster, by its `postmaster.pid` and the processes that run. */
export type LockOwner = NonNullable<Awaited<ReturnType<typeof inspect>>>;

/**
 * Removes what a killed predecessor left in the cluster. Returns the owner, and changes nothing, if the cluster is in use.
 *
 * @throws KeyholdError `DATABASE_UNAVAILABLE` when a server that should stop does not.
 */
export async function acquireLock(clusterDir: string, log: Log): Promise<LockOwner | undefined> {
  const owner = await findLockOwner(clusterDir);
  if (owner?.isOrphan === false) return owner;
  if (owner !== null) await stopOrphan(owner.pid, clusterDir, log);
  await removeStaleFiles(clusterDir);
  return undefined;
}

/** Deleting `postmaster.pid` while its server runs would allow a second server, and the two would corrupt the data. */
async function stopOrphan(pid: number, clusterDir: string, log: Log): Promise<void> {
  log("warn", `stopping PostgreSQL process ${pid}, left running by a Keyhold process that was killed`);
  const over = new AbortController();
  await shutDown(pid, clusterDir, untilGone(pid, over.signal)).finally(() => over.abort());
  if (await describeProcess(pid))
    throw new KeyholdError("DATABASE_UNAVAILABLE", `PostgreSQL process ${pid} did not exit: stop it and try again`);
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

/** Returns the server that uses the cluster; null if none does. Rejects only if its files cannot be read. */
function findLockOwner(clusterDir: string): Promise<LockOwner | null> {
  const findCertain = async () => {
    const owner = await inspect(clusterDir);
    return owner?.keyholdPid === null ? undefined : owner;
  };
  return poll(findCertain, AbortSignal.timeout(exitDelayMs)).catch(() => inspect(clusterDir));
}

/** `keyholdPid` is the process that started the server; null: not Keyhold, or in another container and cannot be inspected. */
async function inspect(clusterDir: string) {
  const file = await readPidFile(clusterDir);
  if (file === undefined) return null;
  const { pid, socketDir } = file;
  const found = await describeProcess(pid);
  // The working directory of a server is its data directory, whatever its path. Where it cannot be read, the command line decides.
  if (found !== undefined && ((await worksIn(pid, clusterDir)) ?? found.command.includes(`-D ${clusterDir} `))) {
    const mark = found.command.split(ownerMark)[1];
    const keyholdPid = mark === undefined ? null : Number.parseInt(mark, 10);
    return { pid, keyholdPid, isOrphan: keyholdPid !== null && keyholdPid !== found.parent };
  }
  const isServed = socketDir !== undefined && (await answers(socketDir));
  return isServed ? { pid, keyholdPid: null, isOrphan: false } : null;
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
 * does not start, with a message of its own. Call it when no postmaster uses the cluster. Without /proc it does nothing.
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

import { stat } from "node:fs/promises";
import { readPidFile } from "./pid-file.ts";
import { ownerMark } from "./postmaster.ts";
import type { ProcessInfo } from "./process.ts";
import { describeProcess, poll } from "./process.ts";
import { answers } from "./socket.ts";

/** The process that uses a cluster, by its `postmaster.pid` and the processes that run. */
export type LockOwner =
  /** None; an existing `postmaster.pid` names a process that is not this cluster's server. */
  | { readonly kind: "none" }
  /** A server whose Keyhold process has ended. */
  | { readonly kind: "orphan"; readonly pid: number }
  /** A server of the running Keyhold process `owner`. */
  | { readonly kind: "keyhold"; readonly pid: number; readonly owner: number }
  /** A server that Keyhold did not start, or that runs in another container and cannot be inspected. */
  | { readonly kind: "foreign"; readonly pid: number };

/** Until the kernel has removed it, a killed process still accepts connections but has no command line. */
const exitDelayMs = 1_000;

/** Returns the process that uses the cluster. Rejects only if its files cannot be read. */
export function findLockOwner(clusterDir: string): Promise<LockOwner> {
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
  if (found !== undefined && (await serves(pid, found, clusterDir))) return classify(pid, found);
  if (socketDir !== undefined && (await answers(socketDir))) return { kind: "foreign", pid };
  return { kind: "none" };
}

function classify(pid: number, { parent, command }: ProcessInfo): LockOwner {
  const owner = command.split(ownerMark)[1];
  if (owner === undefined) return { kind: "foreign", pid };
  return Number.parseInt(owner, 10) === parent ? { kind: "keyhold", pid, owner: parent } : { kind: "orphan", pid };
}

/** The working directory of a server is its data folder, whatever its path. Where it cannot be read, the command line decides. */
async function serves(pid: number, { command }: ProcessInfo, clusterDir: string): Promise<boolean> {
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

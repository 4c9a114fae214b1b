import { stat } from "node:fs/promises";
import { readPidFile } from "./pid-file.ts";
import { ownerMark } from "./postmaster.ts";
import type { ProcessInfo } from "./process.ts";
import { describeProcess, poll } from "./process.ts";
import { answers } from "./socket.ts";

/** Who holds a cluster, by its `postmaster.pid` and what really runs. */
export type LockOwner =
  /** No one; a `postmaster.pid` that is there names a process that is not this cluster's server. */
  | { readonly kind: "none" }
  /** A server whose Keyhold has gone. */
  | { readonly kind: "orphan"; readonly pid: number }
  /** A server of the living Keyhold process `owner`. */
  | { readonly kind: "keyhold"; readonly pid: number; readonly owner: number }
  /** A server that was not started by Keyhold, or runs in another container where we cannot look. */
  | { readonly kind: "stranger"; readonly pid: number };

/** A killed process still accepts connections, but has no command line any more, until the kernel is done with it. */
const dyingMs = 1_000;

/** Finds out who holds the cluster. Rejects only if its files cannot be read. */
export function findLockOwner(clusterDir: string): Promise<LockOwner> {
  const settled = async () => {
    const holder = await look(clusterDir);
    return holder.kind === "stranger" ? undefined : holder;
  };
  return poll(settled, AbortSignal.timeout(dyingMs)).catch(() => look(clusterDir));
}

async function look(clusterDir: string): Promise<LockOwner> {
  const file = await readPidFile(clusterDir);
  if (file === undefined) return { kind: "none" };
  const { pid, socketDir } = file;
  const found = await describeProcess(pid);
  if (found !== undefined && (await serves(pid, found, clusterDir))) return classify(pid, found);
  if (socketDir !== undefined && (await answers(socketDir))) return { kind: "stranger", pid };
  return { kind: "none" };
}

function classify(pid: number, { parent, command }: ProcessInfo): LockOwner {
  const owner = command.split(ownerMark)[1];
  if (owner === undefined) return { kind: "stranger", pid };
  return Number.parseInt(owner, 10) === parent ? { kind: "keyhold", pid, owner: parent } : { kind: "orphan", pid };
}

/** A server works in its data folder, whatever path that goes by. Where that cannot be read, its command line must do. */
async function serves(pid: number, { command }: ProcessInfo, clusterDir: string): Promise<boolean> {
  return (await worksIn(pid, clusterDir)) ?? command.includes(`-D ${clusterDir} `);
}

/**
 * Whether the folder is the working directory of the process. Undefined if it cannot be read: without /proc, and of another
 * user's process without CAP_SYS_PTRACE, which root lacks in most containers (proc(5)).
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

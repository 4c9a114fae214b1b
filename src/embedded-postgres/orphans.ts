import { readdir } from "node:fs/promises";
import { worksIn } from "./lock-owner.ts";
import { describeProcess, signalProcess, untilGone } from "./process.ts";

/**
 * Ends the server processes of a cluster whose postmaster was killed. A busy one notices that only when its query is
 * over, and keeps a new server from starting until then. SIGQUIT ends it at once; what it had committed is in the log.
 * One that stays all the same makes PostgreSQL refuse to start, with a message of its own.
 * To be called when no postmaster holds the cluster. Without /proc they are left to end by themselves.
 */
export async function endOrphanedBackends(clusterDir: string): Promise<void> {
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

/** Child processes rename themselves, as in `postgres: keyhold-17: checkpointer`; a shell in that folder is none. */
async function isOrphanedBackend(pid: number, clusterDir: string): Promise<boolean> {
  const found = await describeProcess(pid);
  if (found === undefined || !found.command.startsWith("postgres: ")) return false;
  return (await worksIn(pid, clusterDir)) === true && (await worksIn(found.parent, clusterDir)) !== true;
}

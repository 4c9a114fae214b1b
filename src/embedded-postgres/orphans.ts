import { readdir } from "node:fs/promises";
import { worksIn } from "./lock-owner.ts";
import { describeProcess, signalProcess, untilGone } from "./process.ts";

/**
 * Terminates the server processes of a cluster whose postmaster was killed. A busy one notices that only when its query ends, and
 * blocks the start of a new server until then. SIGQUIT ends it at once; what it committed is in the WAL. If one stays, PostgreSQL
 * refuses to start with a message of its own. Call it when no postmaster uses the cluster. Without /proc it does nothing.
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

/** Server processes set their title, such as `postgres: keyhold-17: checkpointer`; a shell in that folder has another. */
async function isOrphanedBackend(pid: number, clusterDir: string): Promise<boolean> {
  const found = await describeProcess(pid);
  if (found === undefined || !found.command.startsWith("postgres: ")) return false;
  return (await worksIn(pid, clusterDir)) === true && (await worksIn(found.parent, clusterDir)) !== true;
}

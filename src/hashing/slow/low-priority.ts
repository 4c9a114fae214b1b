import { spawnSync } from "node:child_process";
import { readlinkSync } from "node:fs";
import { setPriority } from "node:os";

/** The lowest priority of a thread (sched(7)). */
const LOWEST = 19;

/**
 * Lowers the priority of the calling thread, and of no other. On Linux, where a priority is one of a thread, the scheduler then prefers the event
 * loop. Does nothing elsewhere.
 */
export function lowerThreadPriority(): void {
  try {
    // A link such as 4711/task/4712 (proc_thread_self(5)).
    const [, threadId] = /\/task\/(\d+)$/.exec(readlinkSync("/proc/thread-self")) ?? [];
    if (threadId === undefined) return;
    setPriority(Number(threadId), LOWEST);
    preferAllOthers(threadId);
  } catch {
    // Hashes are computed at the priority of the process.
  }
}

/**
 * Sets the policy SCHED_IDLE, for which Node has no function: from Linux 6.6 on, a thread with the lowest priority still delays one that wakes by
 * up to its time slice, several milliseconds. Without the program, of util-linux or BusyBox, the priority alone counts.
 */
function preferAllOthers(threadId: string): void {
  spawnSync("chrt", ["-i", "-p", "0", threadId], { env: { PATH: "/usr/bin:/bin" }, stdio: "ignore", timeout: 1_000 });
}

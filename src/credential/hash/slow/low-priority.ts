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
    if (threadId !== undefined) setPriority(Number(threadId), LOWEST);
  } catch {
    // Hashes are computed at the usual priority.
  }
}

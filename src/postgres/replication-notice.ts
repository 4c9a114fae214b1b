import type { Notice } from "postgres";

/**
 * Whether a commit did not wait for its synchronous standby to the end: it was cancelled, as by `statement_timeout`. It is made here, and a
 * failover may lose it. PostgreSQL reports it as a WARNING of class 01000, whose text is translated; servers name their routine.
 */
export function isReplicationCancelled({ code, routine }: Partial<Notice>): boolean {
  return code === "01000" && (routine === undefined || routine === "SyncRepWaitForLSN");
}

import type { Notice } from "postgres";

/**
 * Returns whether a notice says that a commit's wait for its synchronous standby was cancelled, for example by `statement_timeout`. The
 * change is committed on this server, and a failover may lose it. PostgreSQL reports it as a WARNING of class 01000 with a translated
 * text, so it is recognized by its routine.
 */
export function isReplicationCancelled({ code, routine }: Partial<Notice>): boolean {
  return code === "01000" && (routine === undefined || routine === "SyncRepWaitForLSN");
}

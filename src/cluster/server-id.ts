/**
 * Identifies a running PostgreSQL server: `<system identifier>/<timeline>/<start time>`. A promoted standby has the system identifier of
 * its primary and the next timeline; a copy of a data directory may share both, but not the start time.
 */
export type ServerId = string;

/** Position of a database, read by one statement. */
export interface DatabasePosition {
  readonly server: ServerId;
  /** WAL position that is certain to survive the server and a failover to a synchronous standby; null if unknown. */
  readonly lsn: bigint | null;
  /** By the clock of the database, Unix time in milliseconds. */
  readonly time: number;
}

/** Returns `<system identifier>/<timeline>`. Servers that share it have the same changes, up to their positions. */
export function historyOf(server: ServerId): string {
  return server.slice(0, server.lastIndexOf("/"));
}

export function systemIdentifierOf(server: ServerId): string {
  return server.slice(0, server.indexOf("/"));
}

export function timelineOf(server: ServerId): number {
  const [, timeline = ""] = server.split("/");
  return Number.parseInt(timeline, 16);
}

/** The server whose changes this node receives. */
export interface ServerObserver {
  /** Null without a session. */
  readonly server: ServerId | null;
  /**
   * Call it with the server that answered a statement on which a verdict or token depends, and with the server of the session when the
   * statement was sent.
   *
   * @throws `DATABASE_UNAVAILABLE` when they differ.
   */
  requireServer(server: ServerId, expected: ServerId | null): void;
}

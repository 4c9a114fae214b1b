/**
 * Identifies a PostgreSQL server as it runs: `<system identifier>/<timeline>/<start time>`. A standby that is promoted has the system
 * identifier of its primary and the next timeline; a copy of a data folder may have both in common, but not the start time.
 */
export type ServerId = string;

/** The database as one statement saw it. */
export interface DatabasePosition {
  readonly server: ServerId;
  /**
   * Up to where the write-ahead log is certain to outlive the server, and a failover to a synchronous standby; null if this statement
   * cannot tell.
   */
  readonly lsn: bigint | null;
  /** By the clock of the database, in milliseconds since the Unix epoch. */
  readonly time: number;
}

/** Returns `<system identifier>/<timeline>`: servers that share it have the same changes, as far as each goes. */
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

/** The server whose changes this node hears of. */
export interface ServerObserver {
  /** Null: none. */
  readonly server: ServerId | null;
  /**
   * To be called with the server that has answered a statement on which a verdict or a token depends, and the one that was heard when it was sent.
   *
   * @throws `DATABASE_UNAVAILABLE` when it is another one.
   */
  requireServer(server: ServerId, expected: ServerId | null): void;
}

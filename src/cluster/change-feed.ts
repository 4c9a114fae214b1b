import { KeyholdError } from "../domain/errors.ts";
import type { DatabasePosition, ServerId } from "./server-id.ts";

export type FeedEvent =
  /** The key was changed or deleted. */
  | { readonly type: "key"; readonly keyId: string }
  /** The limits that the keys of the actor share were changed. */
  | { readonly type: "actor"; readonly actorId: string }
  /** Raw keys with these digests were imported. */
  | { readonly type: "digests"; readonly digests: readonly Uint8Array[] }
  | { readonly type: "signing_keys" }
  /** How imported hashes are looked up has changed. */
  | { readonly type: "hash_schemes" }
  /** The audit log has grown. Every change that it has by now was notified before. */
  | ({ readonly type: "audit_log" } & LogPosition)
  /** Anything may have changed. */
  | { readonly type: "everything" }
  /** A node asks all others to acknowledge that they have received every change committed before this. */
  | ({ readonly type: "barrier" } & Mark)
  /** A node acknowledges one of our barriers. */
  | ({ readonly type: "acknowledgement" } & Mark)
  /** A renewal of this session's lease, which was sent on another connection. */
  | { readonly type: "echo"; readonly number: number };

/** A position in the audit log. */
export interface LogPosition {
  /** Number of events before it. */
  readonly size: number;
  /** A random value of the last of them, by which it is recognized. */
  readonly salt: string;
}

/** Identifies a barrier. In a barrier `from` is the session of its sender, in an acknowledgement the lease of the node. */
export interface Mark {
  readonly from: string;
  readonly number: number;
}

/** A lease as stored in the database. */
export interface LeaseRow {
  readonly leaseId: string;
  /** Milliseconds. */
  readonly ttl: number;
  /** Incremented by each renewal. */
  readonly renewals: number;
}

export interface NodeIdentity {
  /** Display name, such as `host:4711`. */
  readonly name: string;
  readonly version: string;
  /** Duration of its leases, in milliseconds. */
  readonly ttl: number;
}

/** Position of the database at the start of a session. */
export interface SessionPosition extends DatabasePosition {
  /** WAL position at which a server that was promoted since its start ended to follow its primary; null if it was not promoted. */
  readonly promotedAt: bigint | null;
  /**
   * When an operator last accepted a database with this history (`keyhold cluster accept-database`), Unix time in milliseconds; null if
   * never.
   */
  readonly acceptTime: number | null;
  /** End of the audit log; null if it has no event, or if the last one was erased. */
  readonly log: LogPosition | null;
}

/**
 * A connection that receives notifications in commit order: all that are committed after `openFeed` resolved. Any failure or timeout ends
 * it for good; `onLost` is called exactly once.
 */
export interface FeedSession {
  /** Unique id of the session and of its lease. */
  readonly id: string;
  /** Position of the database when the session began. Its server never changes. */
  readonly position: SessionPosition;
  /**
   * Durably stores the lease, which replaces an earlier one of this node, with the most by which the clock of this node may be ahead of the
   * database's (`Renewal.clockAhead`). Returns the leases of the other nodes.
   */
  join(node: NodeIdentity, earlier: string | null, clockAhead: number | null): Promise<readonly LeaseRow[]>;
  acknowledge(marks: readonly Mark[]): Promise<void>;
  /** Deletes those leases that still have this number of renewals. Returns the remaining leases of the other nodes. */
  fence(overdue: readonly LeaseRow[]): Promise<readonly LeaseRow[]>;
  /** Deletes the lease and ends the session. */
  leave(): Promise<void>;
  /** Ends the session. Default `reason`: the session was ended. */
  end(reason?: Error): void;
}

export interface FeedListener {
  /** Never throws. */
  onEvent(event: FeedEvent): void;
  onLost(reason: Error): void;
}

/** Opens a session; rejects after `timeout` milliseconds. */
export type OpenFeed = (listener: FeedListener, timeout: number) => Promise<FeedSession>;

/** Keys, digests of raw keys, and actors that changes concern. */
export interface MissedChanges {
  readonly keyIds: readonly string[];
  readonly digests: readonly Uint8Array[];
  readonly actorIds?: readonly string[];
}

/**
 * Returns what has changed since a position of the audit log, by every change that is committed before this call; null if the log of the
 * server cannot tell.
 */
export type ReadMissed = (since: LogPosition, server: ServerId) => Promise<MissedChanges | null>;

export interface Renewal {
  readonly leaseId: string;
  /** Number within the session; the echo contains it. */
  readonly number: number;
  /** Shown to operators, in milliseconds; null if unknown. */
  readonly feedLag: number | null;
  /** The most by which the clock of this node may be ahead of the database's, in milliseconds; null if unknown. */
  readonly clockAhead: number | null;
}

export interface RenewalAnswer {
  readonly position: DatabasePosition;
  /** Whether the lease still existed. A deleted lease is lost for good. */
  readonly isHeld: boolean;
  /** Whether the commit waited for all synchronous standbys. */
  readonly isReplicated: boolean;
  /** All leases. */
  readonly leases: readonly LeaseRow[];
}

/**
 * Renews a lease on a connection that is opened for it like those for reads and changes, so that the renewal shows where they lead now.
 * Sends an echo to the session. `signal` is aborted when the result is no longer needed.
 */
export type RenewLease = (renewal: Renewal, signal: AbortSignal) => Promise<RenewalAnswer>;

export interface BarrierAnswer {
  readonly position: DatabasePosition;
  /** Leases of the other nodes. */
  readonly leases: readonly LeaseRow[];
}

/**
 * Sends a barrier to all other nodes on one connection and returns their leases. With null it sends none and returns only the position.
 */
export type SendBarrier = (mark: Mark | null) => Promise<BarrierAnswer>;

/** A statement was answered by another server than that of the session. */
export class OtherServerError extends KeyholdError {
  constructor(server: ServerId, expected: ServerId) {
    super(
      "DATABASE_UNAVAILABLE",
      `KEYHOLD_DATABASE_URL connects to server ${server}, but KEYHOLD_DATABASE_LISTEN_URL to ${expected}: both must point to the same server`,
    );
  }
}

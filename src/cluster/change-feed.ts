import { KeyholdError } from "../domain/errors.ts";
import type { DatabasePosition, ServerId } from "./server-id.ts";

/** What the database tells a node. */
export type FeedEvent =
  /** This key changed or went. */
  | { readonly type: "key"; readonly keyId: string }
  /** Raw keys with these digests came. */
  | { readonly type: "digests"; readonly digests: readonly Uint8Array[] }
  | { readonly type: "signing_keys" }
  /** Anything may have changed. */
  | { readonly type: "everything" }
  /** Someone asks every node to say that it has heard of all that was committed before this. */
  | ({ readonly type: "barrier" } & Mark)
  /** A node has heard a barrier of ours. */
  | ({ readonly type: "acknowledgement" } & Mark)
  /** A renewal of this session's lease, which went over another connection. */
  | { readonly type: "echo"; readonly number: number };

/** Who speaks, and of which barrier: of the asker of a barrier the session, of an acknowledgement the lease. */
export interface Mark {
  readonly from: string;
  readonly number: number;
}

/** A lease as it stands in the database. */
export interface LeaseRow {
  readonly leaseId: string;
  /** Milliseconds. */
  readonly ttl: number;
  /** Goes up with each renewal. */
  readonly renewals: number;
}

/** What a node says of itself. */
export interface NodeIdentity {
  /** For people, such as `host:4711`. */
  readonly name: string;
  readonly version: string;
  /** How long its leases are, in milliseconds. */
  readonly ttl: number;
}

/** The database at the beginning of a session. */
export interface SessionPosition extends DatabasePosition {
  /** Where a server that was promoted while it runs ended to follow its primary; null: it was not. */
  readonly promotedAt: bigint | null;
  /** When an operator last accepted a database with this history (`keyhold cluster accept-database`), in milliseconds; null: never. */
  readonly acceptTime: number | null;
}

/**
 * One connection to the database, and what is heard on it, in the order of the commits. It hears of all that was committed after
 * `openFeed` resolved. Whatever fails or comes too late ends it for good; `onLost` is told once, whoever ended it.
 */
export interface FeedSession {
  /** Of this session and of the lease that it may take: no other ever has it. */
  readonly id: string;
  /** The database when the session began. Its server stays the same. */
  readonly position: SessionPosition;
  /** Takes the lease, durably, in place of an earlier one of this node. Answers the leases of the others. */
  join(node: NodeIdentity, earlier: string | null): Promise<readonly LeaseRow[]>;
  acknowledge(marks: readonly Mark[]): Promise<void>;
  /** Takes the leases away that still have this number of renewals, and answers those that others have now. */
  fence(overdue: readonly LeaseRow[]): Promise<readonly LeaseRow[]>;
  /** Gives up the lease and ends. */
  leave(): Promise<void>;
  /** `reason` by default: the session was ended. */
  end(reason?: Error): void;
}

export interface FeedListener {
  /** Never throws. */
  onEvent(event: FeedEvent): void;
  onLost(reason: Error): void;
}

/** Opens a session within so many milliseconds, or rejects. */
export type OpenFeed = (listener: FeedListener, timeout: number) => Promise<FeedSession>;

export interface Renewal {
  readonly leaseId: string;
  /** Of this session: the echo has it. */
  readonly number: number;
  /** For people, in milliseconds, if it is known. */
  readonly feedLag: number | null;
}

export interface RenewalAnswer {
  readonly position: DatabasePosition;
  /** Whether the lease was still there. One that was not is lost for good. */
  readonly isHeld: boolean;
  /** Whether the commit waited for the synchronous standbys, if there are any. */
  readonly isReplicated: boolean;
  /** All leases. */
  readonly leases: readonly LeaseRow[];
}

/**
 * Renews a lease, over a connection that is opened for it in the way in which connections for reads and changes are opened: a renewal
 * shows where those lead now. It sends an echo to the session. The signal is that nobody waits for it any more.
 */
export type RenewLease = (renewal: Renewal, signal: AbortSignal) => Promise<RenewalAnswer>;

export interface BarrierAnswer {
  readonly position: DatabasePosition;
  /** Of the others. */
  readonly leases: readonly LeaseRow[];
}

/** Sends a barrier to all other nodes over one connection, and answers their leases. Null: sends none, and answers only the position. */
export type SendBarrier = (mark: Mark | null) => Promise<BarrierAnswer>;

/** A statement was answered by a server that the session does not listen to. */
export class OtherServerError extends KeyholdError {
  constructor(server: ServerId, expected: ServerId) {
    super(
      "DATABASE_UNAVAILABLE",
      `the connections for keys lead to server ${server}, and the one for notifications to ${expected}: KEYHOLD_DATABASE_URL and KEYHOLD_DATABASE_LISTEN_URL must lead to the same server`,
    );
  }
}

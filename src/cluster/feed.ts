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
  /** What was sent to this session over another connection, to see whether it arrives. */
  | { readonly type: "echo" };

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

export interface Renewal {
  /** Whether the lease was still there. One that was not is lost for good. */
  readonly isHeld: boolean;
  /** The leases of the others. */
  readonly others: readonly LeaseRow[];
}

/**
 * One connection to the database, and what is heard on it, in the order of the commits. It hears of all that was committed after
 * `openFeed` resolved. Whatever fails or comes too late ends it for good; `onLost` is told once, whoever ended it.
 */
export interface FeedSession {
  /** Of this session and of the lease that it may take: no other ever has it. */
  readonly id: string;
  /** Takes the lease, durably, in place of an earlier one of this node. Answers the leases of the others. */
  join(node: NodeIdentity, earlier: string | null): Promise<readonly LeaseRow[]>;
  /** `feedLag`: for people, in milliseconds, if it is known. */
  renew(feedLag: number | null): Promise<Renewal>;
  /** Asks all other nodes, and answers the leases that they have now. */
  barrier(number: number): Promise<readonly LeaseRow[]>;
  acknowledge(marks: readonly Mark[]): Promise<void>;
  /** Takes the leases away that still have this number of renewals, and answers those that others have now. */
  fence(overdue: readonly LeaseRow[]): Promise<readonly LeaseRow[]>;
  /** Gives up the lease and ends. */
  leave(): Promise<void>;
  end(): void;
}

export interface FeedListener {
  /** Never throws. */
  onEvent(event: FeedEvent): void;
  onLost(reason: Error): void;
}

/**
 * Sends an echo to a session, over one of the connections that keys are read and changed by, and answers whether the lease of the
 * session stands there.
 */
export type SendEcho = (sessionId: string) => Promise<boolean>;

/** Opens a session within so many milliseconds, or rejects. */
export type OpenFeed = (listener: FeedListener, timeout: number) => Promise<FeedSession>;

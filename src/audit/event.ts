import type { AuthMethod } from "../domain/principal.ts";

/** The call of an event, as stored. An absent member is empty. */
export interface CallRecord {
  /** Such as `admin-token:<key_id>`. */
  readonly caller: string;
  /** `database`: a session that has changed the tables in SQL. */
  readonly method: AuthMethod | "database";
  readonly subject: string;
  /** The key of an admin token. */
  readonly key_id?: string;
  /** Of an OIDC access token. */
  readonly issuer?: string;
  readonly rpc?: string;
  readonly peer_ip?: string;
  readonly client_ip?: string;
  readonly user_agent?: string;
  readonly call_id?: string;
  /** AIP-155. */
  readonly request_id?: string;
  readonly node?: string;
}

/** Columns by name, as JSON. */
export type RecordedRow = Readonly<Record<string, unknown>>;

/** An event of the audit log: a change that was made. Contains no secret. */
export interface AuditEvent {
  /** Position in the log, without gaps, from 0. */
  readonly seq: number;
  /** When the change was made, by the clock of the database, in milliseconds. */
  readonly time: Date;
  /** Such as `key.revoked`. */
  readonly action: string;
  readonly keyId: string | null;
  /** The actor of the key. */
  readonly actorId: string | null;
  /** What the event is about if it is not a key. */
  readonly resourceId: string | null;
  readonly call: CallRecord;
  /** The changed columns before and after; null: the row did not exist, or does not exist any more. */
  readonly before: RecordedRow | null;
  readonly after: RecordedRow | null;
  /** Random, so that the digest of an event reveals nothing about it. Null: the event was erased, and all but its time, action and key are empty. */
  readonly salt: string | null;
}

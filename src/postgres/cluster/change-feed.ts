import { randomUUID } from "node:crypto";
import type { Sql } from "postgres";
import type {
  FeedListener,
  FeedSession,
  LeaseRow,
  Mark,
  NodeIdentity,
  OpenFeed,
  SessionPosition,
} from "../../cluster/change-feed.ts";
import { raceSignal } from "../../lib/race-signal.ts";
import { toError } from "../../lib/to-error.ts";
import { ALGORITHM_NAMES } from "../../token/jwt/algorithms.ts";
import { databaseError } from "../connection/errors.ts";
import { firstRow } from "../connection/first-row.ts";
import { type Opening, openPrimary } from "../connection/primary.ts";
import { lsn, positionColumns, systemIdentifier, timeline } from "../connection/server-position.ts";
import {
  AUDIT_CHANNEL,
  acknowledgementText,
  CHANGES_CHANNEL,
  parseFeedEvent,
  sessionChannel,
} from "./change-feed-events.ts";
import { leaseColumns } from "./leases.ts";

/**
 * The controls on a key that this release applies, by which a node announces them. Servers of release 0.2 and earlier apply none: migration
 * 0017 keeps them and keys with a control apart. The names of the first two are those of their checks (`verify/checks.ts`).
 */
export const CONTROLS = ["DISABLED", "ADDRESS", "ACTORS", "LIMITS"] as const;

/** Statement timeout of a session, in milliseconds. */
const STATEMENT_TIMEOUT = 5_000;

/** Returns a function that opens sessions on dedicated connections. The URL must not lead to a transaction pooler, which receives no notifications. */
export function createOpenFeed(url: string): OpenFeed {
  return async (listener, timeout) => {
    const session = new Session(url, listener);
    try {
      await session.listen(timeout);
    } catch (error) {
      session.end();
      throw databaseError(error);
    }
    return session;
  };
}

/**
 * A session ends with its connection, because the driver would reconnect without LISTEN. The driver may also leave a statement pending
 * then (postgres 3.4.9), so each statement races with the end.
 */
class Session implements FeedSession {
  readonly id = randomUUID();
  readonly #opening: Opening;
  readonly #listener: FeedListener;
  readonly #ended = new AbortController();
  /** Both are set by `listen`. */
  #sql!: Sql;
  position!: SessionPosition;

  constructor(url: string, listener: FeedListener) {
    this.#listener = listener;
    this.#opening = openPrimary({
      url,
      statementTimeout: STATEMENT_TIMEOUT,
      prepare: true,
      applicationName: "keyhold feed",
      onNotification: (channel, payload) => {
        if (!this.#ended.signal.aborted) listener.onEvent(parseFeedEvent(channel, payload));
      },
      onClose: () => this.end(new Error("the connection was closed")),
    });
  }

  async listen(timeout: number): Promise<void> {
    const timer = setTimeout(() => this.end(new Error("the database did not respond in time")), timeout);
    const channels = [CHANGES_CHANNEL, AUDIT_CHANNEL, sessionChannel(this.id)];
    const statements = channels.map((channel) => `LISTEN "${channel}"`).join("; ");
    try {
      this.#sql = await this.#run(this.#opening.ready);
      await this.#run(this.#sql.unsafe(statements));
      this.position = await this.#run(readPosition(this.#sql));
    } finally {
      clearTimeout(timer);
    }
  }

  async join(node: NodeIdentity, earlier: string | null, clockAhead: number | null): Promise<readonly LeaseRow[]> {
    const rows = await this.#run(this.#sql<LeaseRow[]>`
      WITH gone AS (DELETE FROM nodes WHERE lease_id = ${earlier}), joined AS (
        INSERT INTO nodes (lease_id, name, version, ttl_ms, clock_ahead_ms, signing_algorithms, verification_checks)
        VALUES (${this.id}, ${node.name}, ${node.version}, ${node.ttl}, ${clockAhead}, ${[...ALGORITHM_NAMES]}, ${[...CONTROLS]})
      )
      SELECT ${leaseColumns(this.#sql)} FROM nodes WHERE lease_id IS DISTINCT FROM ${earlier}`);
    return this.#others(rows);
  }

  async acknowledge(marks: readonly Mark[]): Promise<void> {
    const channels = marks.map(({ from }) => sessionChannel(from));
    const texts = marks.map(({ number }) => acknowledgementText(this.id, number));
    await this.#run(this.#sql`
      SELECT pg_notify(channel, text) FROM unnest(${channels}::text[], ${texts}::text[]) AS mark (channel, text)`);
  }

  /** A locked row is being renewed and so is not overdue. Waiting for the lock could take as long as its backend hangs. */
  async fence(overdue: readonly LeaseRow[]): Promise<readonly LeaseRow[]> {
    const leaseIds = overdue.map(({ leaseId }) => leaseId);
    const renewals = overdue.map((lease) => String(lease.renewals));
    const rows = await this.#run(this.#sql<LeaseRow[]>`
      WITH fenced AS (
        DELETE FROM nodes WHERE lease_id IN (
          SELECT lease_id FROM nodes
          JOIN unnest(${leaseIds}::uuid[], ${renewals}::text[]::bigint[]) AS overdue (lease_id, renewals) USING (lease_id, renewals)
          FOR UPDATE OF nodes SKIP LOCKED
        ) RETURNING lease_id
      )
      SELECT ${leaseColumns(this.#sql)} FROM nodes WHERE lease_id NOT IN (SELECT lease_id FROM fenced)`);
    return this.#others(rows);
  }

  async leave(): Promise<void> {
    await this.#run(this.#sql`DELETE FROM nodes WHERE lease_id = ${this.id}`);
  }

  end(reason = new Error("the session was closed")): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort(reason);
    void this.#opening.end({ timeout: 0 });
    this.#listener.onLost(reason);
  }

  #others(rows: readonly LeaseRow[]): LeaseRow[] {
    return rows.filter(({ leaseId }) => leaseId !== this.id);
  }

  async #run<T>(statement: PromiseLike<T>): Promise<T> {
    try {
      return await raceSignal(this.#ended.signal, statement);
    } catch (error) {
      this.end(toError(error));
      throw error;
    }
  }
}

async function readPosition(sql: Sql): Promise<SessionPosition> {
  const rows = await sql<SessionPosition[]>`
    SELECT ${positionColumns(sql)}, ${lsn(sql, sql`pg_last_wal_replay_lsn()`)} AS promoted_at,
      (SELECT extract(epoch FROM max(accept_time)) * 1000 FROM accepted_databases
       WHERE system_identifier = ${systemIdentifier(sql)} AND timeline = ${timeline(sql)}) AS accept_time,
      (SELECT json_build_object('size', size, 'salt', salt) FROM audit_log JOIN audit_events ON seq = size - 1 AND salt IS NOT NULL) AS log`;
  return firstRow(rows);
}

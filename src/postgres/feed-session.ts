import { randomUUID } from "node:crypto";
import type { Sql } from "postgres";
import type { FeedListener, FeedSession, LeaseRow, Mark, NodeIdentity, OpenFeed, Renewal } from "../cluster/feed.ts";
import { Ending } from "../lib/ending.ts";
import { toError } from "../lib/to-error.ts";
import { connect } from "./connect.ts";
import { databaseError } from "./errors.ts";
import { acknowledgementText, barrierText, CHANGES_CHANNEL, parseFeedEvent, sessionChannel } from "./feed-events.ts";

/** After this the database cancels a statement of a session, in milliseconds. */
const STATEMENT_TIMEOUT = 5_000;

interface Row {
  readonly lease_id: string;
  readonly ttl_ms: number;
  /** The driver's form of a bigint. */
  readonly renewals: string;
}

/** Opens sessions over connections of their own. The URL is that of the database itself: a pooler of transactions hears no notifications. */
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
 * The driver would connect again by itself, to a session that listens to nothing: with the first end of its connection this one is
 * over. The driver may also leave a statement unanswered then (postgres 3.4.9), so each is raced with the end.
 */
class Session implements FeedSession {
  readonly id = randomUUID();
  readonly #sql: Sql;
  readonly #listener: FeedListener;
  readonly #ending = new Ending();

  constructor(url: string, listener: FeedListener) {
    this.#listener = listener;
    this.#sql = connect({
      url,
      maxConnections: 1,
      statementTimeout: STATEMENT_TIMEOUT,
      prepare: true,
      applicationName: "keyhold feed",
      onNotification: (_channel, payload) => {
        if (this.#ending.reason === undefined) listener.onEvent(parseFeedEvent(payload));
      },
      onClose: () => this.#end(new Error("the connection was closed")),
    });
  }

  async listen(timeout: number): Promise<void> {
    const timer = setTimeout(() => this.#end(new Error("the database did not answer in time")), timeout);
    const channels = [CHANGES_CHANNEL, sessionChannel(this.id)];
    const statements = channels.map((channel) => `LISTEN "${channel}"`).join("; ");
    await this.#run(this.#sql.unsafe(statements)).finally(() => clearTimeout(timer));
  }

  async join(node: NodeIdentity, earlier: string | null): Promise<readonly LeaseRow[]> {
    const rows = await this.#run(this.#sql<Row[]>`
      WITH gone AS (DELETE FROM nodes WHERE lease_id = ${earlier}), joined AS (
        INSERT INTO nodes (lease_id, name, version, ttl_ms) VALUES (${this.id}, ${node.name}, ${node.version}, ${node.ttl})
      )
      SELECT lease_id, ttl_ms, renewals FROM nodes WHERE lease_id IS DISTINCT FROM ${earlier}`);
    return this.#others(rows);
  }

  /** No notification: it would wake up every node, so that of many each would be woken up by all the others. */
  async renew(feedLag: number | null): Promise<Renewal> {
    const rows = await this.#run(this.#sql<(Row & { is_held: boolean })[]>`
      WITH renewed AS (
        UPDATE nodes SET renewals = renewals + 1, renew_time = clock_timestamp(), feed_lag_ms = ${feedLag}
        WHERE lease_id = ${this.id}
        RETURNING lease_id
      )
      SELECT lease_id, ttl_ms, renewals, EXISTS (SELECT FROM renewed) AS is_held FROM nodes`);
    return { isHeld: rows.some((row) => row.is_held), others: this.#others(rows) };
  }

  /** With nobody to ask, nothing is sent. The same text is sent once, however many rows it is selected with. */
  async barrier(number: number): Promise<readonly LeaseRow[]> {
    const rows = await this.#run(this.#sql<Row[]>`
      SELECT lease_id, ttl_ms, renewals, pg_notify(${CHANGES_CHANNEL}, ${barrierText(this.id, number)})
      FROM nodes WHERE lease_id <> ${this.id}`);
    return this.#others(rows);
  }

  async acknowledge(marks: readonly Mark[]): Promise<void> {
    const channels = marks.map(({ from }) => sessionChannel(from));
    const texts = marks.map(({ number }) => acknowledgementText(this.id, number));
    await this.#run(this.#sql`
      SELECT pg_notify(channel, text) FROM unnest(${channels}::text[], ${texts}::text[]) AS mark (channel, text)`);
  }

  /** A row that is locked is being renewed, and so not overdue: to wait for it could take as long as its backend hangs. */
  async fence(overdue: readonly LeaseRow[]): Promise<readonly LeaseRow[]> {
    const leaseIds = overdue.map(({ leaseId }) => leaseId);
    const renewals = overdue.map((lease) => String(lease.renewals));
    const rows = await this.#run(this.#sql<(Row & { is_fenced: boolean })[]>`
      WITH fenced AS (
        DELETE FROM nodes WHERE lease_id IN (
          SELECT lease_id FROM nodes
          JOIN unnest(${leaseIds}::uuid[], ${renewals}::text[]::bigint[]) AS overdue (lease_id, renewals) USING (lease_id, renewals)
          FOR UPDATE OF nodes SKIP LOCKED
        ) RETURNING lease_id
      )
      SELECT lease_id, ttl_ms, renewals FROM nodes WHERE lease_id NOT IN (SELECT lease_id FROM fenced)`);
    return this.#others(rows);
  }

  async leave(): Promise<void> {
    await this.#run(this.#sql`DELETE FROM nodes WHERE lease_id = ${this.id}`);
  }

  end(): void {
    this.#end(new Error("the session was ended"));
  }

  #others(rows: readonly Row[]): LeaseRow[] {
    const others = rows.filter(({ lease_id }) => lease_id !== this.id);
    return others.map(({ lease_id, ttl_ms, renewals }) => ({
      leaseId: lease_id,
      ttl: ttl_ms,
      renewals: Number(renewals),
    }));
  }

  async #run<T>(statement: PromiseLike<T>): Promise<T> {
    try {
      return await this.#ending.race(statement);
    } catch (error) {
      this.#end(toError(error));
      throw error;
    }
  }

  #end(reason: Error): void {
    if (!this.#ending.end(reason)) return;
    void this.#sql.end({ timeout: 0 });
    this.#listener.onLost(reason);
  }
}

import type { Sql } from "postgres";
import { withTimeout } from "../../lib/with-timeout.ts";
import { databaseError, tooLate } from "../connection/errors.ts";
import { type Opening, openPrimary } from "../connection/primary.ts";

/** Key of the advisory lock that the leader holds; that of the migrations is one less. */
const LOCK = 5394654;

/** Milliseconds for the database to answer. */
const ANSWER_TIMEOUT = 5_000;

/** Seconds for a connection to close. */
const CLOSE_TIMEOUT = 1;

/**
 * Elects the node that holds an advisory lock, over a connection at this URL that only the leader keeps open. The database releases
 * the lock with the connection; keepalives let it notice within 25 s that the leader's machine is gone. After a failover, the node
 * that led on the former primary may take itself for the leader until it asks the next time.
 */
export class Leadership {
  readonly #url: string;
  /** The connection that holds the lock; null: this node does not lead. */
  #held: { readonly opening: Opening; readonly sql: Sql } | null = null;
  #asking: Promise<boolean> | null = null;

  constructor(url: string) {
    this.#url = url;
  }

  /** Returns whether this node is the leader; it becomes the leader if there is none. @throws `DATABASE_UNAVAILABLE` */
  isLeader(): Promise<boolean> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  /** Releases the leadership if this node has it. */
  async close(): Promise<void> {
    await this.#asking?.catch(() => undefined);
    await this.#held?.opening.end({ timeout: CLOSE_TIMEOUT });
    this.#held = null;
  }

  async #ask(): Promise<boolean> {
    if (this.#held !== null && (await this.#isAlive(this.#held))) return true;
    return this.#acquire();
  }

  /** Whether the connection still leads to a primary, where it holds the lock. */
  async #isAlive({ opening, sql }: { readonly opening: Opening; readonly sql: Sql }): Promise<boolean> {
    try {
      await answered(sql`SELECT pg_current_wal_lsn()`);
      return true;
    } catch {
      this.#held = null;
      void opening.end({ timeout: 0 });
      return false;
    }
  }

  async #acquire(): Promise<boolean> {
    const opening: Opening = openPrimary({
      url: this.#url,
      statementTimeout: ANSWER_TIMEOUT,
      prepare: false,
      applicationName: "keyhold leader",
      onClose: () => {
        if (this.#held?.opening === opening) this.#held = null;
      },
    });
    try {
      const sql = await opening.ready;
      const [row] = await answered(sql<{ isLeader: boolean }[]>`
        SELECT pg_try_advisory_lock(${LOCK}) AS is_leader, set_config('tcp_keepalives_idle', '10', false),
          set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false)`);
      if (row?.isLeader !== true) {
        await opening.end({ timeout: CLOSE_TIMEOUT });
        return false;
      }
      this.#held = { opening, sql };
      return true;
    } catch (error) {
      void opening.end({ timeout: 0 });
      throw databaseError(error);
    }
  }
}

function answered<T>(answer: PromiseLike<T>): Promise<T> {
  return withTimeout(answer, ANSWER_TIMEOUT, () => {
    throw tooLate();
  });
}

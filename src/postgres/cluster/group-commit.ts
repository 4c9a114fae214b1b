import postgres, { type PendingQuery, type Row, type Sql } from "postgres";
import type { BarrierAnswer, Mark } from "../../cluster/change-feed.ts";
import type { Propagation } from "../../cluster/propagation.ts";
import { Batcher } from "../../lib/batcher.ts";
import { withTimeout } from "../../lib/with-timeout.ts";
import { databaseError, wasRolledBack } from "../connection/errors.ts";
import { firstRow } from "../connection/first-row.ts";
import type { Database } from "../connection/pool.ts";
import { sendBarrier } from "./leases.ts";
import { type Committed, fromSameServer, handled, propagate } from "./propagate.ts";

/** A statement of `withServer` that changes at most the row of one key. It may share a transaction with those of other callers. */
export interface KeyStatement<T> {
  readonly keyId: string;
  readonly query: (sql: Sql) => PendingQuery<Row[]>;
  /** Returns the result of its row, whose columns are null if nothing was changed. */
  resultOf(row: Row): T;
}

interface Item {
  readonly change: KeyStatement<unknown>;
  readonly name: string | undefined;
}

/** With two, the statements of the second are executed while the first waits for its commit. */
const MAX_IN_FLIGHT = 2;

/** Bounds how long a transaction holds its locks. The driver pipelines up to 100 statements. */
const MAX_CHANGES = 64;

/** Milliseconds for which a change of a row that others have locked may keep other changes waiting. */
const LOCK_TIMEOUT = 100;

/** Milliseconds after which a transaction keeps others no longer waiting: its backend may hang. */
const HANG_TIMEOUT = 1_000;

/** A node that is paused while it sends a transaction must not delay the changes of other nodes for long. */
const BEGIN = `BEGIN; SET LOCAL lock_timeout = ${LOCK_TIMEOUT}; SET LOCAL idle_in_transaction_session_timeout = '2s'`;

/** COMMIT waits for the lock of NOTIFY, which others hold while they wait for a synchronous standby. */
const END_LOCK_TIMEOUT = "SET LOCAL lock_timeout = 0";

/**
 * Returns a function that commits changes of single keys. Those that wait at the same time share one transaction, because every commit
 * with a notification holds a lock of the whole server until it is flushed. The transaction and the barrier after it are sent at once,
 * and take one round trip.
 *
 * Unprepared statements would take two round trips each, so they share no transaction.
 *
 * A change that raises undoes its transaction: then it is repeated alone, and the others together, and each alone if another one raises. All
 * share the outcome of a lost connection, and of a commit that is not replicated.
 */
export function groupCommit(database: Database, propagation: Propagation, isPrepared: boolean) {
  const transact = (items: readonly Item[]): Promise<Committed<readonly Row[]>> =>
    propagate(
      database,
      propagation,
      (sql, committed) => propagation.begin((mark) => send(sql, items, mark, committed)),
      items.length === 1 ? items[0]?.name : "keys.change_many",
    );
  const commitAlone = async (item: Item): Promise<Committed<Row>> => {
    const { result, propagated } = await transact([item]);
    return { result: firstRow(result), propagated };
  };
  type Outcomes = ReadonlyMap<Item, Committed<Row> | Promise<Committed<Row>>>;
  const commitTogether = async (items: readonly Item[], isRepeated = false): Promise<Outcomes> => {
    try {
      const { result, propagated } = await transact(items);
      return new Map(items.map((item, place) => [item, { result: result[place] as Row, propagated }]));
    } catch (error) {
      if (!(error instanceof RaisedError)) throw error;
      const alone = isRepeated || items.length === 2 ? items : [error.item];
      const others = items.filter((item) => !alone.includes(item));
      const outcomes = others.length > 0 ? await commitTogether(others, true) : [];
      return new Map([...outcomes, ...alone.map((item) => [item, commitAlone(item)] as const)]);
    }
  };
  const commitAll = async (items: readonly Item[]) => {
    const outcomes = commitTogether(items.toSorted(compareKeyIds));
    await withTimeout(outcomes, items.length === 1 ? LOCK_TIMEOUT : HANG_TIMEOUT, () => undefined);
    // Promises, because the batcher waits for this function before it sends the next items.
    return items.map(async (item) => (await outcomes).get(item) as Committed<Row>);
  };
  const batcher = new Batcher(commitAll, {
    maxInFlight: MAX_IN_FLIGHT,
    maxItems: MAX_CHANGES,
    concernsAll: () => true,
  });
  return async <T>(change: KeyStatement<T>, name: string | undefined): Promise<Committed<T>> => {
    const item: Item = { change, name };
    const { result, propagated } = await (isPrepared ? batcher.do(item) : commitAlone(item));
    return { result: change.resultOf(result), propagated };
  };
}

/** As every statement that locks several keys does; those of the same key in the order of the calls. */
function compareKeyIds({ change: a }: Item, { change: b }: Item): number {
  return a.keyId < b.keyId ? -1 : Number(a.keyId > b.keyId);
}

/** The statement of a change that shares a transaction has raised, and so undone the transaction. */
class RaisedError extends Error {
  readonly item: Item;

  constructor(item: Item, cause: unknown) {
    super("a statement of the transaction failed", { cause });
    this.item = item;
  }
}

/**
 * Sends the statements of changes, several in one transaction, and the barrier behind them. The leases are read after the commit: a node
 * whose lease is later has read nothing that is earlier than the changes. Calls `committed` with the row of each change.
 */
async function send(
  sql: Sql,
  items: readonly Item[],
  mark: Mark | null,
  committed: (rows: readonly Row[]) => void,
): Promise<BarrierAnswer> {
  const isShared = items.length > 1;
  const command = (text: string) => (isShared ? [sql.unsafe<Row[]>(text)] : []);
  const statements = [
    ...command(BEGIN),
    ...items.map(({ change }) => change.query(sql)),
    ...command(END_LOCK_TIMEOUT),
    ...command("COMMIT"),
  ];
  const sent = statements.map((statement) => statement.execute().catch(raisedBy));
  const barrier = handled(sendBarrier(sql, mark, false));
  const results = await Promise.all(sent);
  const first = isShared ? 1 : 0;
  const failure = results.find((result) => result instanceof postgres.PostgresError);
  if (failure !== undefined) {
    await barrier;
    const raising = items[results.indexOf(failure) - first];
    throw isShared && raising !== undefined ? new RaisedError(raising, failure) : failure;
  }
  const rows = results.slice(first, first + items.length).map((rows) => firstRow(rows as Row[]));
  committed(rows);
  return fromSameServer(
    await barrier,
    rows.map(({ server }) => server),
  );
}

/**
 * Returns the error of a statement that the server has rejected, and rolled back.
 *
 * @throws any other, after which the connection has to be closed: the driver may assign the responses behind it to the wrong statements.
 */
function raisedBy(error: unknown): postgres.PostgresError {
  const isOfServer = error instanceof postgres.PostgresError;
  if (isOfServer && (databaseError(error) === error || wasRolledBack(error))) return error;
  if (databaseError(error) !== error) throw error;
  throw Object.assign(new Error("a statement was not sent", { cause: error }), { code: "CONNECTION_DESTROYED" });
}

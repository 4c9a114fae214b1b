import type { Notice, Sql } from "postgres";
import { KeyholdError } from "../domain/errors.ts";
import { toError } from "../lib/to-error.ts";
import type { DatabaseOptions } from "./connect.ts";
import { ConnectBackoff } from "./connect-backoff.ts";
import { cutOff, databaseError, tooLate } from "./errors.ts";
import { type Opening, openPrimary } from "./primary.ts";
import { isReplicationCancelled } from "./replication-notice.ts";

/** Where statements run. */
export interface Database {
  /**
   * Runs statements over a connection that nobody else uses meanwhile. A database that cannot be reached, or does not answer
   * in time, is `DATABASE_UNAVAILABLE`; what was begun may then be done or not. `OVERLOADED` if too many wait: nothing is begun.
   * `statement` is what traces call it.
   */
  run<T>(work: Work<T>, statement?: string): Promise<T>;
}

export type Work<T> = (sql: Sql, checkout: Checkout) => PromiseLike<T>;

/** What is known of the statements of one use of a connection. */
export interface Checkout {
  /** Whether a commit did not wait for its synchronous standby to the end: it is made, and a failover may lose it. */
  readonly isReplicationCancelled: boolean;
}

export interface PoolOptions extends DatabaseOptions {
  /** Milliseconds that a turn may take, the wait for its connection included. */
  readonly answerTimeout?: number;
  /** Turns at the most that wait for a connection. */
  readonly maxWaiting?: number;
  /** Shared by the pools of one database. */
  readonly attempts?: ConnectBackoff;
}

/** How busy a pool is. */
export interface PoolUsage {
  /** Connections that are open, and how many of them have a user. */
  readonly open: number;
  readonly inUse: number;
  readonly max: number;
  /** Turns that wait for a connection. */
  readonly waiting: number;
}

/** One use of a connection. */
interface Turn {
  /** When the caller is told that the answer is late, by `performance.now()`. */
  readonly deadline: number;
  readonly begin: (connection: Connection) => void;
  readonly reject: (error: Error) => void;
}

interface Connection {
  readonly opening: Opening;
  /** Null until it is open, to a server that is a primary. */
  sql: Sql | null;
  /** When it is thrown away after its next use, by `performance.now()`. */
  readonly expiry: number;
  /** Null: it is idle. */
  turn: Turn | null;
  /** Of the statements of this turn. */
  readonly checkout: { isReplicationCancelled: boolean };
  /** Whether the database has answered over it. */
  isProven: boolean;
}

/**
 * A second more than the database lets a statement run, for the answer to come: after that none will. The backend hangs, or its
 * machine, or the road to it, is gone.
 */
const ANSWER_TIMEOUT = 11_000;

/**
 * The last defence: calls that wait are bounded before they come here (`transport/concurrency-limiter.ts`), to half of that. It holds what
 * memory a line can take, some 2 KB a turn, whoever stands in it.
 */
const MAX_WAITING = 2_000;

/** Seconds. */
const CLOSE_TIMEOUT = 5;

/** Milliseconds; twice as long at the most. A backend keeps what it has learned of tables, and a name may lead elsewhere by now. */
const MIN_LIFETIME = 30 * 60_000;

/**
 * Connections that are made when needed, each with one user at a time, and thrown away when the database has failed that one.
 * The driver has a pool of its own, but a connection that it lost may then answer nobody ever again, or answer the next user
 * with the error of the one before (postgres 3.4.9; porsager/postgres#1193, #1208, #1223).
 */
export class Pool implements Database {
  readonly #options: PoolOptions;
  readonly #attempts: ConnectBackoff;
  readonly #answerTimeout: number;
  readonly #connections: Connection[] = [];
  /** In the order in which they came, which is that of their deadlines. */
  readonly #waiting: Turn[] = [];
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  /** The pool has `maxConnections` of the options at the most. */
  constructor(options: PoolOptions) {
    this.#options = options;
    this.#attempts = options.attempts ?? new ConnectBackoff();
    this.#answerTimeout = options.answerTimeout ?? ANSWER_TIMEOUT;
  }

  run<T>(work: Work<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(stopping());
    return new Promise((resolve, reject) => {
      const turn: Turn = {
        deadline: performance.now() + this.#answerTimeout,
        begin: (connection) => void this.#serve(turn, connection, work).then(resolve, reject),
        reject,
      };
      this.#enter(turn);
    });
  }

  get usage(): PoolUsage {
    const inUse = this.#connections.filter(({ turn }) => turn !== null).length;
    const { maxConnections: max } = this.#options;
    return { open: this.#connections.length, inUse, max, waiting: this.#waiting.length };
  }

  /**
   * Tells everyone who waits or is served that the database cannot be reached, and throws all connections away: for whoever knows
   * that it cannot, and would else wait for each connection to show it by itself. The next turn begins with a new one.
   */
  giveUp(reason: Error): void {
    const connections = this.#connections.splice(0);
    for (const { reject } of this.#waiting.splice(0)) reject(cutOff(reason));
    for (const connection of connections) {
      connection.turn?.reject(cutOff(reason));
      connection.turn = null;
      end(connection);
    }
  }

  /** Lets what is under way finish for 5 s, and ends every connection. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#connections.map(({ opening }) => opening.end({ timeout: CLOSE_TIMEOUT })));
  }

  async #serve<T>(turn: Turn, connection: Connection, work: Work<T>): Promise<T> {
    try {
      connection.checkout.isReplicationCancelled = false;
      connection.sql ??= await connection.opening.ready;
      const result = await work(connection.sql, connection.checkout);
      this.#release(connection, turn);
      return result;
    } catch (error) {
      const told = connection.sql === null ? notOpened(error) : databaseError(error);
      if (told !== error && told instanceof Error) this.#lose(connection, turn, told);
      else this.#release(connection, turn);
      throw told;
    }
  }

  #enter(turn: Turn): void {
    const connection = this.#take();
    if (connection !== null) begin(connection, turn);
    else this.#standInLine(turn);
    if (this.#timer === null) this.#watch(this.#answerTimeout);
  }

  #standInLine(turn: Turn): void {
    if (this.#connections.length === 0) turn.reject(this.#refusal());
    else if (this.#waiting.length >= (this.#options.maxWaiting ?? MAX_WAITING)) turn.reject(lineIsFull());
    else this.#waiting.push(turn);
  }

  /** The database has answered. Nothing happens to a turn that was given up: its connection is away. */
  #release(connection: Connection, turn: Turn): void {
    if (connection.turn !== turn) return;
    connection.turn = null;
    if (!connection.isProven) this.#attempts.succeeded();
    connection.isProven = true;
    if (performance.now() > connection.expiry) this.#drop(connection);
    this.#serveWaiting();
  }

  /** The database has failed this turn. One that never answered over this connection may be away. */
  #lose(connection: Connection, turn: Turn, failure: Error): void {
    if (connection.turn !== turn) return;
    connection.turn = null;
    if (!connection.isProven) this.#attempts.failed(failure, performance.now());
    this.#drop(connection);
    this.#serveWaiting();
  }

  /** One that was closed while nobody used it: the next turn needs another, as no connection is made twice. */
  #dropIdle(connection: Connection): void {
    if (connection.turn === null && this.#connections.includes(connection)) this.#drop(connection);
  }

  #drop(connection: Connection): void {
    this.#connections.splice(this.#connections.indexOf(connection), 1);
    end(connection);
  }

  /** When there is no connection, and none may be made, nobody is left to wait for. */
  #serveWaiting(): void {
    while (this.#waiting.length > 0) {
      const connection = this.#take();
      if (connection === null) break;
      const next = this.#waiting.shift();
      if (next !== undefined) begin(connection, next);
    }
    if (this.#connections.length > 0) return;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#refusal());
  }

  #take(): Connection | null {
    return this.#connections.find(({ turn }) => turn === null) ?? (this.#mayOpen() ? this.#open() : null);
  }

  #mayOpen(): boolean {
    const isRoom = this.#connections.length < this.#options.maxConnections;
    return isRoom && !this.#isClosed && this.#attempts.refusal(performance.now()) === null;
  }

  #refusal(): Error {
    return this.#isClosed ? stopping() : (this.#attempts.refusal(performance.now()) ?? cutOff());
  }

  #open(): Connection {
    const checkout = { isReplicationCancelled: false };
    const onNotice = (notice: Notice) => {
      checkout.isReplicationCancelled ||= isReplicationCancelled(notice);
    };
    const onClose = () => this.#dropIdle(connection);
    const expiry = performance.now() + MIN_LIFETIME * (1 + Math.random());
    const opening = openPrimary({ ...this.#options, onNotice, onClose });
    const connection: Connection = { opening, sql: null, expiry, turn: null, checkout, isProven: false };
    this.#connections.push(connection);
    return connection;
  }

  /** One timer for all turns, set for the oldest. It keeps no process alive: a connection does. */
  #watch(delay: number): void {
    this.#timer = setTimeout(() => this.#endLate(), delay).unref();
  }

  #endLate(): void {
    const now = performance.now();
    while (this.#waiting[0] !== undefined && this.#waiting[0].deadline <= now) this.#waiting.shift()?.reject(tooLate());
    const late = this.#connections.flatMap((connection) => {
      const { turn } = connection;
      return turn !== null && turn.deadline <= now ? [{ connection, turn }] : [];
    });
    // What has kept one from its answer may have cut off those too that nobody has used since.
    if (late.length > 0) for (const idle of this.#connections.filter(({ turn }) => turn === null)) this.#drop(idle);
    for (const { connection, turn } of late) {
      turn.reject(tooLate());
      this.#lose(connection, turn, tooLate());
    }
    this.#timer = null;
    const oldest = this.#oldest();
    if (oldest !== undefined) this.#watch(oldest.deadline - now);
  }

  #oldest(): Turn | undefined {
    const turns = this.#connections.flatMap(({ turn }) => turn ?? []);
    return [...turns, ...this.#waiting.slice(0, 1)].sort((a, b) => a.deadline - b.deadline)[0];
  }
}

function begin(connection: Connection, turn: Turn): void {
  connection.turn = turn;
  turn.begin(connection);
}

function end({ opening }: Connection): void {
  void opening.end({ timeout: 0 });
}

/** Whatever is wrong, such as a certificate: no statement was sent, and the next connection may be better. */
function notOpened(error: unknown): Error {
  const told = databaseError(error);
  return told instanceof KeyholdError ? told : cutOff(toError(error));
}

function stopping(): KeyholdError {
  return new KeyholdError("DATABASE_UNAVAILABLE", "the service is stopping");
}

function lineIsFull(): KeyholdError {
  return new KeyholdError("OVERLOADED", "too many calls wait for the database");
}

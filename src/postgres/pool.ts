import type { Sql } from "postgres";
import { KeyholdError } from "../errors.ts";
import { connect, type DatabaseOptions } from "./connect.ts";
import { databaseError, tooLate } from "./errors.ts";

/** Where statements run. */
export interface Database {
  /**
   * Runs statements over a connection that nobody else uses meanwhile. A database that cannot be reached, or does not answer
   * in time, is `DATABASE_UNAVAILABLE`; what was begun may then be done or not.
   */
  run<T>(work: Work<T>): Promise<T>;
}

export type Work<T> = (sql: Sql) => PromiseLike<T>;

/** One use of a connection. */
interface Turn {
  /** Null before, and once it is over. */
  connection: Sql | null;
  /** When the caller is told that the answer is late, by `performance.now()`. */
  readonly deadline: number;
  readonly begin: (connection: Sql) => void;
  readonly giveUp: () => void;
}

/** Longer than the database lets a statement run: no answer will come when its machine, or the road to it, is gone. */
const ANSWER_TIMEOUT = 15_000;

/** Seconds. */
const CLOSE_TIMEOUT = 5;

/**
 * Connections that are made when needed, each with one user at a time, and thrown away when the database has failed that one.
 * The driver has a pool of its own, but a connection that it lost may then answer nobody ever again, or answer the next user
 * with the error of the one before (postgres 3.4.9; porsager/postgres#1193, #1208, #1223).
 */
export class Pool implements Database {
  readonly #options: DatabaseOptions;
  readonly #answerTimeout: number;
  readonly #connections = new Set<Sql>();
  readonly #idle: Sql[] = [];
  /** In the order of their deadlines, which is that in which they came. */
  readonly #turns = new Set<Turn>();
  /** Those of them that have no connection yet. */
  readonly #waiting = new Set<Turn>();
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  /** The pool has `maxConnections` of the options at the most. */
  constructor(options: DatabaseOptions, answerTimeout: number = ANSWER_TIMEOUT) {
    this.#options = options;
    this.#answerTimeout = answerTimeout;
  }

  run<T>(work: Work<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new KeyholdError("DATABASE_UNAVAILABLE", "the service is stopping"));
    return new Promise((resolve, reject) => {
      const turn: Turn = {
        connection: null,
        deadline: performance.now() + this.#answerTimeout,
        begin: (connection) => void this.#serve(turn, connection, work).then(resolve, reject),
        giveUp: () => reject(tooLate()),
      };
      this.#enter(turn);
    });
  }

  /** Lets what is under way finish for 5 s, and ends every connection. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#connections].map((connection) => connection.end({ timeout: CLOSE_TIMEOUT })));
  }

  async #serve<T>(turn: Turn, connection: Sql, work: Work<T>): Promise<T> {
    try {
      const result = await work(connection);
      this.#end(turn, true);
      return result;
    } catch (error) {
      const told = databaseError(error);
      this.#end(turn, told === error);
      throw told;
    }
  }

  #enter(turn: Turn): void {
    this.#turns.add(turn);
    if (this.#timer === null) this.#watch(this.#answerTimeout);
    const connection = this.#take();
    if (connection === null) this.#waiting.add(turn);
    else this.#begin(turn, connection);
  }

  #begin(turn: Turn, connection: Sql): void {
    turn.connection = connection;
    turn.begin(connection);
  }

  /** Ends a turn; nothing happens to one that is over. */
  #end(turn: Turn, isSound: boolean): void {
    this.#turns.delete(turn);
    this.#waiting.delete(turn);
    const { connection } = turn;
    turn.connection = null;
    if (connection === null) return;
    if (isSound) this.#give(connection);
    else this.#drop(connection);
  }

  /** One timer for all turns, set for the oldest. It keeps no process alive: a connection does. */
  #watch(delay: number): void {
    this.#timer = setTimeout(() => this.#endLate(), delay).unref();
  }

  #endLate(): void {
    const now = performance.now();
    const late = [...this.#turns].filter((turn) => turn.deadline <= now);
    for (const turn of late) this.#waiting.delete(turn);
    for (const turn of late) {
      turn.giveUp();
      this.#end(turn, false);
    }
    const [oldest] = this.#turns;
    this.#timer = null;
    if (oldest !== undefined) this.#watch(oldest.deadline - now);
  }

  #take(): Sql | null {
    const connection = this.#idle.pop();
    if (connection !== undefined) return connection;
    return this.#connections.size < this.#options.maxConnections ? this.#open() : null;
  }

  #open(): Sql {
    const connection = connect({ ...this.#options, maxConnections: 1 });
    this.#connections.add(connection);
    return connection;
  }

  #give(connection: Sql): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#idle.push(connection);
      return;
    }
    this.#waiting.delete(next);
    this.#begin(next, connection);
  }

  #drop(connection: Sql): void {
    this.#connections.delete(connection);
    void connection.end({ timeout: 0 });
    if (this.#waiting.size > 0) this.#give(this.#open());
  }
}

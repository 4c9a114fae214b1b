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
  isLate: boolean;
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
  readonly #waiting: ((connection: Sql) => void)[] = [];
  #isClosed = false;

  /** The pool has `maxConnections` of the options at the most. */
  constructor(options: DatabaseOptions, answerTimeout: number = ANSWER_TIMEOUT) {
    this.#options = options;
    this.#answerTimeout = answerTimeout;
  }

  run<T>(work: Work<T>): Promise<T> {
    const turn: Turn = { connection: null, isLate: false };
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      turn.isLate = true;
      this.#end(turn, false);
      late.reject(tooLate());
    }, this.#answerTimeout);
    return Promise.race([this.#serve(turn, work), late.promise]).finally(() => clearTimeout(timer));
  }

  /** Lets what is under way finish for 5 s, and ends every connection. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#connections].map((connection) => connection.end({ timeout: CLOSE_TIMEOUT })));
  }

  async #serve<T>(turn: Turn, work: Work<T>): Promise<T> {
    const connection = await this.#take();
    turn.connection = connection;
    try {
      if (turn.isLate) throw tooLate();
      const result = await work(connection);
      this.#end(turn, true);
      return result;
    } catch (error) {
      const told = databaseError(error);
      this.#end(turn, told === error);
      throw told;
    }
  }

  /** Ends a turn; nothing happens to one that is over. */
  #end(turn: Turn, isSound: boolean): void {
    const { connection } = turn;
    turn.connection = null;
    if (connection === null) return;
    if (isSound) this.#give(connection);
    else this.#drop(connection);
  }

  async #take(): Promise<Sql> {
    if (this.#isClosed) throw new KeyholdError("DATABASE_UNAVAILABLE", "the service is stopping");
    const connection = this.#idle.pop();
    if (connection !== undefined) return connection;
    if (this.#connections.size < this.#options.maxConnections) return this.#open();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #open(): Sql {
    const connection = connect({ ...this.#options, maxConnections: 1 });
    this.#connections.add(connection);
    return connection;
  }

  #give(connection: Sql): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(connection);
    else next(connection);
  }

  #drop(connection: Sql): void {
    this.#connections.delete(connection);
    void connection.end({ timeout: 0 });
    if (this.#waiting.length > 0) this.#give(this.#open());
  }
}

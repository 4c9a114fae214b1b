import type { Notice, Sql } from "postgres";
import { KeyholdError } from "../../domain/errors.ts";
import { toError } from "../../lib/to-error.ts";
import { setLateTimeout } from "../../lib/with-timeout.ts";
import type { DatabaseOptions } from "./connect.ts";
import { ConnectBackoff } from "./connect-backoff.ts";
import { cutOff, databaseError, ForeignSettingError, isReplicationCancelled, tooLate } from "./errors.ts";
import { type Opening, openPrimary } from "./primary.ts";

export interface Database {
  /**
   * Runs statements on a connection that is reserved for `work`. Rejects with `DATABASE_UNAVAILABLE` if the database is unreachable or
   * does not answer in time; the statements may then have taken effect or not. Rejects with `OVERLOADED` before anything is sent if too
   * many calls are waiting. `statement` is the name of the span in traces.
   */
  run<T>(work: Work<T>, statement?: string): Promise<T>;
}

export type Work<T> = (sql: Sql, checkout: Checkout) => PromiseLike<T>;

/** State of one use of a connection. */
export interface Checkout {
  /** Whether a commit's wait for its synchronous standby was cancelled: it is committed, but a failover may lose it. */
  readonly isReplicationCancelled: boolean;
}

export interface PoolOptions extends DatabaseOptions {
  readonly maxConnections: number;
  /** Time limit of a call in milliseconds, the wait for a connection included. */
  readonly answerTimeout?: number;
  readonly maxWaiting?: number;
  /** Shared by the pools of one database. */
  readonly attempts?: ConnectBackoff;
}

/** One call, waiting or using a connection. */
interface Call {
  /** When the call times out, by `performance.now()`. */
  readonly deadline: number;
  readonly begin: (connection: Connection) => void;
  readonly reject: (error: Error) => void;
}

interface Connection {
  readonly opening: Opening;
  /** Null until it is open, to a server that is a primary. */
  sql: Sql | null;
  /** When it is discarded after its next use, by `performance.now()`. */
  readonly expiry: number;
  /** Null: it is idle. */
  call: Call | null;
  readonly checkout: { isReplicationCancelled: boolean };
  /** Whether the database has answered over it. */
  isProven: boolean;
}

/** Milliseconds. One second more than the statement timeout: after that the backend hangs, or its machine or the network is down. */
const ANSWER_TIMEOUT = 11_000;

/**
 * Bounds the memory of the queue, about 2 KB per call. Calls of clients are bounded before, to two thirds of
 * it (`transport/pipeline/concurrency-limiter.ts`).
 */
const MAX_WAITING = 2_000;

/** Seconds. */
const CLOSE_TIMEOUT = 5;

/** Milliseconds; the maximum is twice as long. Connections are replaced because backends cache table metadata and host names may resolve elsewhere. */
const MIN_LIFETIME = 30 * 60_000;

/**
 * Connections that are opened on demand, used by one call at a time, and discarded after a failure of the database. The driver's own
 * pool may leave a query on a lost connection pending for ever, or reject the next query with the error of the previous one
 * (postgres 3.4.9; porsager/postgres#1193, #1208, #1223).
 */
export class Pool implements Database {
  readonly #options: PoolOptions;
  readonly #attempts: ConnectBackoff;
  readonly #answerTimeout: number;
  readonly #connections: Connection[] = [];
  /** In order of arrival, which is that of their deadlines. */
  readonly #waiting: Call[] = [];
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#attempts = options.attempts ?? new ConnectBackoff();
    this.#answerTimeout = options.answerTimeout ?? ANSWER_TIMEOUT;
  }

  run<T>(work: Work<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(stopping());
    return new Promise((resolve, reject) => {
      const call: Call = {
        deadline: performance.now() + this.#answerTimeout,
        begin: (connection) => void this.#serve(call, connection, work).then(resolve, reject),
        reject,
      };
      const connection = this.#take();
      if (connection !== null) begin(connection, call);
      else this.#enqueue(call);
      if (this.#timer === null) this.#watch(this.#answerTimeout);
    });
  }

  /** The open connections, how many of them are in use, their maximum, and the calls that wait for one. */
  get usage() {
    const inUse = this.#connections.filter(({ call }) => call !== null).length;
    const { maxConnections: max } = this.#options;
    return { open: this.#connections.length, inUse, max, waiting: this.#waiting.length };
  }

  /** Whether a call would have to wait now. */
  get isBusy(): boolean {
    const { maxConnections } = this.#options;
    return this.#connections.length >= maxConnections && this.#connections.every(({ call }) => call !== null);
  }

  /**
   * Rejects all waiting and active calls and discards all connections, for a caller that knows that the database is unreachable. The next
   * call opens a new connection.
   */
  disconnect(reason: Error): void {
    const connections = this.#connections.splice(0);
    for (const { reject } of this.#waiting.splice(0)) reject(cutOff(reason));
    for (const connection of connections) {
      connection.call?.reject(cutOff(reason));
      connection.call = null;
      end(connection);
    }
  }

  /** Drains calls in flight for up to 5 s, then ends every connection. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#connections.map(({ opening }) => opening.end({ timeout: CLOSE_TIMEOUT })));
  }

  async #serve<T>(call: Call, connection: Connection, work: Work<T>): Promise<T> {
    try {
      connection.checkout.isReplicationCancelled = false;
      connection.sql ??= await connection.opening.ready;
      const result = await work(connection.sql, connection.checkout);
      this.#release(connection, call);
      return result;
    } catch (error) {
      const translated = connection.sql === null ? notOpened(error) : databaseError(error);
      if (translated instanceof ForeignSettingError || (translated !== error && translated instanceof Error))
        this.#lose(connection, call, translated);
      else this.#release(connection, call);
      throw translated;
    }
  }

  #enqueue(call: Call): void {
    if (this.#connections.length === 0) call.reject(this.#unavailable());
    else if (this.#waiting.length < (this.#options.maxWaiting ?? MAX_WAITING)) this.#waiting.push(call);
    else call.reject(new KeyholdError("OVERLOADED", "too many database calls are waiting; retry after 1 s"));
  }

  /** The database has answered. No-op for a call that was abandoned: its connection was discarded. */
  #release(connection: Connection, call: Call): void {
    if (connection.call !== call) return;
    connection.call = null;
    if (!connection.isProven) this.#attempts.succeeded();
    connection.isProven = true;
    if (performance.now() > connection.expiry) this.#drop(connection);
    this.#serveWaiting();
  }

  /** The database failed this call. A server that never answered on this connection may be unreachable. */
  #lose(connection: Connection, call: Call, failure: Error): void {
    if (connection.call !== call) return;
    connection.call = null;
    if (!connection.isProven) this.#attempts.failed(failure, performance.now());
    this.#drop(connection);
    this.#serveWaiting();
  }

  #drop(connection: Connection): void {
    this.#connections.splice(this.#connections.indexOf(connection), 1);
    end(connection);
  }

  /** Without a connection, and without the permission to open one, nothing can serve the waiting calls. */
  #serveWaiting(): void {
    while (this.#waiting.length > 0) {
      const connection = this.#take();
      if (connection === null) break;
      const next = this.#waiting.shift();
      if (next !== undefined) begin(connection, next);
    }
    if (this.#connections.length > 0) return;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#unavailable());
  }

  #take(): Connection | null {
    return this.#connections.find(({ call }) => call === null) ?? (this.#mayOpen() ? this.#open() : null);
  }

  #mayOpen(): boolean {
    const isRoom = this.#connections.length < this.#options.maxConnections;
    return isRoom && !this.#isClosed && this.#attempts.lastFailure(performance.now()) === null;
  }

  #unavailable(): Error {
    return this.#isClosed ? stopping() : (this.#attempts.lastFailure(performance.now()) ?? cutOff());
  }

  #open(): Connection {
    const checkout = { isReplicationCancelled: false };
    const onNotice = (notice: Notice) => {
      checkout.isReplicationCancelled ||= isReplicationCancelled(notice);
    };
    // A connection that closed while idle is removed; connections are never reopened.
    const onClose = () => {
      if (connection.call === null && this.#connections.includes(connection)) this.#drop(connection);
    };
    const expiry = performance.now() + MIN_LIFETIME * (1 + Math.random());
    const opening = openPrimary({ ...this.#options, onNotice, onClose });
    const connection: Connection = { opening, sql: null, expiry, call: null, checkout, isProven: false };
    this.#connections.push(connection);
    return connection;
  }

  /** One timer for all calls, set for the oldest deadline. It does not keep the process alive; a connection does. */
  #watch(delay: number): void {
    this.#timer = setLateTimeout(() => this.#endLate(), delay).unref();
  }

  #endLate(): void {
    const now = performance.now();
    while (this.#waiting[0] !== undefined && this.#waiting[0].deadline <= now) this.#waiting.shift()?.reject(tooLate());
    const late = this.#connections.flatMap((connection) => {
      const { call } = connection;
      return call !== null && call.deadline <= now ? [{ connection, call }] : [];
    });
    // The cause may have affected idle connections too.
    if (late.length > 0) for (const idle of this.#connections.filter(({ call }) => call === null)) this.#drop(idle);
    for (const { connection, call } of late) {
      call.reject(tooLate());
      this.#lose(connection, call, tooLate());
    }
    this.#timer = null;
    const calls = this.#connections.flatMap(({ call }) => call ?? []);
    const deadlines = [...calls, ...this.#waiting.slice(0, 1)].map(({ deadline }) => deadline);
    if (deadlines.length > 0) this.#watch(Math.min(...deadlines) - now);
  }
}

function begin(connection: Connection, call: Call): void {
  connection.call = call;
  call.begin(connection);
}

function end({ opening }: Connection): void {
  void opening.end({ timeout: 0 });
}

/** Whatever the cause, such as a certificate: no statement was sent, and the next connection may succeed. */
function notOpened(error: unknown): Error {
  const translated = databaseError(error);
  return translated instanceof KeyholdError ? translated : cutOff(toError(error));
}

function stopping(): KeyholdError {
  return new KeyholdError("DATABASE_UNAVAILABLE", "the server is stopping");
}

import type { Sql } from "postgres";
import { CONNECT_TIMEOUT, connectTo, type DatabaseOptions } from "./connect.ts";
import { addressOf, type ConnectionUrl, type Host, parseConnectionUrl } from "./connection-url.ts";
import { hostsToTry, rememberPrimary } from "./last-primary.ts";

/**
 * Milliseconds after which the next host is tried beside one that has not answered, so that a host whose packets are dropped does not
 * use up the time of the caller. More than a busy machine takes to answer, less than half of the shortest lease.
 */
const NEXT_HOST_DELAY = 400;

/** A connection that is being opened, and then open. */
export interface Opening {
  /** One connection to a primary, which is not made again when it ends. Rejects with what was wrong with each host. */
  readonly ready: Promise<Sql>;
  /** Ends the connection, as the driver's `end` does. With a `timeout` of 0 it ends at once, also while it is opened. */
  end(how: { readonly timeout: number }): Promise<void>;
}

/**
 * Opens one connection to the primary among the hosts of the URL: to a server that is not in recovery, which each is asked before the
 * connection is used. Each host is tried once, beginning with the one that was the primary last, and each for five seconds at the most;
 * the first primary is taken. `maxConnections` of the options is ignored.
 */
export function openPrimary(options: DatabaseOptions, { failsOnStandby = false }: PrimaryOptions = {}): Opening {
  const search = new Search(options, failsOnStandby);
  return { ready: search.ready, end: (how) => search.end(how) };
}

export interface PrimaryOptions {
  /** Whether the first statement is an error on a standby by itself: a single host is then not asked before. */
  readonly failsOnStandby?: boolean;
}

/** No host is a primary that may be used. */
class NoPrimaryError extends Error {
  readonly code: string;

  constructor(hosts: readonly Host[], failures: ReadonlyMap<Host, Error>) {
    const found = hosts.map((host) => `${addressOf(host)} ${describeFailure(failures.get(host))}`);
    super(`no primary among ${hosts.map(addressOf).join(", ")}: ${found.join(", ")}`);
    const codes = new Set([...failures.values()].map(codeOf));
    const [only = ""] = codes;
    // What all fail with, such as a wrong password, is told from an unreachable database by its code.
    this.code = codes.size === 1 && only !== "" ? only : "NO_PRIMARY";
  }
}

class StandbyError extends Error {
  readonly code = "NO_PRIMARY";
}

class Search {
  readonly #options: DatabaseOptions;
  readonly #url: ConnectionUrl;
  readonly #left: Host[];
  /** Whether a server is asked if it is in recovery. */
  readonly #isAsked: boolean;
  readonly #failures = new Map<Host, Error>();
  readonly #clients = new Set<Sql>();
  readonly #found = Promise.withResolvers<Sql>();
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;
  #taken: Sql | null = null;

  constructor(options: DatabaseOptions, failsOnStandby: boolean) {
    this.#options = options;
    this.#url = parseConnectionUrl(options.url);
    this.#isAsked = !failsOnStandby || this.#url.hosts.length > 1;
    this.#left = [...hostsToTry(this.#url)];
    // Who ends it at once need not wait for it.
    this.ready.catch(() => undefined);
    this.#tryNext();
  }

  get ready(): Promise<Sql> {
    return this.#found.promise;
  }

  async end(how: { readonly timeout: number }): Promise<void> {
    if (how.timeout === 0) this.#giveUp();
    await this.ready.then(
      (sql) => sql.end(how),
      () => undefined,
    );
  }

  #tryNext(): void {
    clearTimeout(this.#timer);
    const host = this.#left.shift();
    if (host === undefined || this.#isOver) return;
    if (this.#left.length > 0) this.#timer = setTimeout(() => this.#tryNext(), NEXT_HOST_DELAY);
    this.#try(host).then(
      (sql) => this.#take(host, sql),
      (error) => this.#fail(host, error),
    );
  }

  /** Ends the client unless the server is a primary. */
  async #try(host: Host): Promise<Sql> {
    let isClosed = false;
    const onClose = () => {
      isClosed = true;
      if (this.#taken === sql) this.#options.onClose?.();
    };
    const sql = connectTo({ ...this.#options, maxConnections: 1, onClose }, host);
    this.#clients.add(sql);
    if (!this.#isAsked) return sql;
    try {
      const asked = sql.unsafe("SELECT pg_is_in_recovery() AS is_standby");
      const [row] = await answeredWithin(asked, CONNECT_TIMEOUT * 1000);
      if (row?.is_standby !== false) throw new StandbyError("is a standby (in recovery)");
      if (isClosed) throw Object.assign(new Error("closed the connection"), { code: "CONNECTION_CLOSED" });
      return sql;
    } catch (error) {
      this.#drop(sql);
      throw error;
    }
  }

  #take(host: Host, sql: Sql): void {
    if (this.#isOver) {
      this.#drop(sql);
      return;
    }
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#clients.delete(sql);
    for (const other of this.#clients) this.#drop(other);
    rememberPrimary(this.#url, host);
    this.#taken = sql;
    this.#found.resolve(sql);
  }

  #fail(host: Host, error: Error): void {
    const { hosts } = this.#url;
    this.#failures.set(host, error);
    if (this.#failures.size < hosts.length) this.#tryNext();
    else if (hosts.length === 1 && !(error instanceof StandbyError)) this.#found.reject(error);
    else this.#found.reject(new NoPrimaryError(hosts, this.#failures));
  }

  #giveUp(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    for (const sql of this.#clients) this.#drop(sql);
    this.#found.reject(Object.assign(new Error("the connection was given up"), { code: "CONNECTION_ENDED" }));
  }

  #drop(sql: Sql): void {
    this.#clients.delete(sql);
    void sql.end({ timeout: 0 });
  }
}

/** Rejects with what `describeFailure` puts into words when the first answer of a host takes longer than these milliseconds. */
export async function answeredWithin<T>(answer: PromiseLike<T>, limit: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const error = Object.assign(new Error("did not answer in time"), { code: "CONNECT_TIMEOUT" });
  const timer = setTimeout(() => late.reject(error), limit);
  return Promise.race([answer, late.promise]).finally(() => clearTimeout(timer));
}

function codeOf(error: Error): string {
  return "code" in error ? String(error.code) : "";
}

/** Of the driver's and Node's messages the usual ones are put into words; all name the host themselves. */
const IN_WORDS: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "refused the connection"],
  ["CONNECT_TIMEOUT", "did not answer in time"],
  ["ENOTFOUND", "is a name that does not resolve"],
  ["EAI_AGAIN", "is a name that cannot be resolved now"],
  ["ENOENT", "is a socket that does not exist"],
  ["EHOSTUNREACH", "is unreachable"],
  ["ENETUNREACH", "is unreachable"],
  ["ECONNRESET", "closed the connection"],
  ["CONNECTION_CLOSED", "closed the connection"],
]);

/** What was wrong with a host, as the end of a sentence that begins with it. */
export function describeFailure(error: Error | undefined): string {
  if (error === undefined) return "was not tried";
  if (error instanceof StandbyError) return error.message;
  return IN_WORDS.get(codeOf(error)) ?? `failed (${error.message || codeOf(error)})`;
}

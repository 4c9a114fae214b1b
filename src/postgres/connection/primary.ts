import type { Sql } from "postgres";
import { withTimeout } from "../../lib/with-timeout.ts";
import { CONNECT_TIMEOUT, connectTo, type DatabaseOptions, ownSettings } from "./connect.ts";
import { addressOf, type ConnectionUrl, type Host, parseConnectionUrl } from "./connection-url.ts";
import { firstRow } from "./first-row.ts";
import { type OpenedSession, openingStatements, rememberSchema } from "./session-settings.ts";

/**
 * Milliseconds after which the next host is tried in parallel, so that a host whose packets are dropped does not use up the caller's
 * time. More than a busy machine takes to answer, less than half of the shortest lease.
 */
const NEXT_HOST_DELAY = 400;

/** A connection that is being opened or is open. */
export interface Opening {
  /** Resolves with one connection to a primary, which never reconnects. Rejects with the failure of each host. */
  readonly ready: Promise<Sql>;
  /** Ends the connection like the driver's `end`. With a `timeout` of 0 it ends at once, even while it is being opened. */
  end(how: { readonly timeout: number }): Promise<void>;
}

/**
 * Opens one connection to the primary among the hosts of the URL: a server that is not in recovery, which is checked before the
 * connection is used, by the statement that pins its settings. Each host is tried once, the last known primary first, for at most five
 * seconds; the first primary wins.
 */
export function openPrimary(options: DatabaseOptions): Opening {
  const search = new Search(options);
  return { ready: search.ready, end: (how) => search.end(how) };
}

/** No host is a usable primary. */
class NoPrimaryError extends Error {
  readonly code: string;

  constructor(hosts: readonly Host[], failures: ReadonlyMap<Host, Error>) {
    const found = hosts.map((host) => `${addressOf(host)} ${describeFailure(failures.get(host))}`);
    super(`no primary among ${hosts.map(addressOf).join(", ")}: ${found.join(", ")}`);
    const codes = new Set([...failures.values()].map(codeOf));
    const [only = ""] = codes;
    // The common code of all hosts, such as that of a wrong password, distinguishes it from an unreachable database.
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
  readonly #failures = new Map<Host, Error>();
  readonly #clients = new Set<Sql>();
  readonly #found = Promise.withResolvers<Sql>();
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;
  #taken: Sql | null = null;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.#url = parseConnectionUrl(options.url);
    this.#left = [...hostsToTry(this.#url)];
    // A caller that ends it at once does not await it.
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
    const sql = connectTo({ ...this.#options, onClose }, host);
    this.#clients.add(sql);
    try {
      const asked = sql.unsafe<OpenedSession[][]>(openingStatements(ownSettings(this.#options)));
      const opened = firstRow((await firstAnswer(asked, CONNECT_TIMEOUT * 1000)).at(-1) ?? []);
      if (opened.isStandby) throw new StandbyError("is a standby (in recovery)");
      if (isClosed) throw Object.assign(new Error("closed the connection"), { code: "CONNECTION_CLOSED" });
      rememberSchema(sql, opened);
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
    recordPrimary(this.#url, host);
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
    this.#found.reject(Object.assign(new Error("the connection attempt was cancelled"), { code: "CONNECTION_ENDED" }));
  }

  #drop(sql: Sql): void {
    this.#clients.delete(sql);
    void sql.end({ timeout: 0 });
  }
}

/** Rejects with an error that `describeFailure` knows when the first answer of a host takes longer than these milliseconds. */
export function firstAnswer<T>(answer: PromiseLike<T>, timeout: number): Promise<T> {
  return withTimeout(answer, timeout, () => {
    throw Object.assign(new Error("did not respond in time"), { code: "CONNECT_TIMEOUT" });
  });
}

function codeOf(error: Error): string {
  return "code" in error ? String(error.code) : "";
}

/** Predicates for the usual error codes of Node and the driver, whose own messages repeat the host. */
const IN_WORDS: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "refused the connection"],
  ["CONNECT_TIMEOUT", "did not respond in time"],
  ["ENOTFOUND", "is a host name that does not resolve"],
  ["EAI_AGAIN", "is a host name that cannot be resolved now"],
  ["ENOENT", "is a Unix socket that does not exist"],
  ["EHOSTUNREACH", "is unreachable"],
  ["ENETUNREACH", "is unreachable"],
  ["ECONNRESET", "closed the connection"],
  ["CONNECTION_CLOSED", "closed the connection"],
]);

/** Returns the failure of a host as a predicate that follows its address. */
export function describeFailure(error: Error | undefined): string {
  if (error === undefined) return "was not tried";
  if (error instanceof StandbyError) return error.message;
  return IN_WORDS.get(codeOf(error)) ?? `failed (${error.message || codeOf(error)})`;
}

/** The address that last answered as a primary, by the addresses of a URL. All connections of the process try it first. */
const lastPrimaries = new Map<string, string>();

/** Returns the hosts in the order in which they are tried. */
function hostsToTry({ hosts }: ConnectionUrl): readonly Host[] {
  const last = lastPrimaries.get(keyOf(hosts));
  const isLast = (host: Host) => addressOf(host) === last;
  return [...hosts.filter(isLast), ...hosts.filter((host) => !isLast(host))];
}

/** Records which of the hosts is the primary. */
function recordPrimary({ hosts }: ConnectionUrl, primary: Host): void {
  lastPrimaries.set(keyOf(hosts), addressOf(primary));
}

function keyOf(hosts: readonly Host[]): string {
  return hosts.map(addressOf).join();
}

import type { Sql } from "postgres";
import { withTimeout } from "../../lib/with-timeout.ts";
import { CONNECT_TIMEOUT, connectTo, type DatabaseOptions, ownSettings } from "./connect.ts";
import { addressOf, type Host, parseConnectionUrl } from "./connection-url.ts";
import { codeOf, databaseError } from "./errors.ts";
import { firstRow } from "./first-row.ts";
import { type OpenedSession, openingStatements, rememberSchema } from "./session-settings.ts";

/**
 * Milliseconds after which the next host is tried in parallel, so that a host whose packets are dropped does not use up the caller's
 * time. More than a busy machine takes to answer, less than half of the shortest lease.
 */
const NEXT_HOST_DELAY = 400;

/** Seconds in which a connection must end. */
const END_TIMEOUT = 5;

/** A connection that is being opened or is open. */
export type Opening = ReturnType<typeof openPrimary>;

/**
 * Opens one connection to the primary among the hosts of the URL: a server that is not in recovery, which is checked before the
 * connection is used, by the statement that pins its settings. Each host is tried once, the last known primary first, for at most five
 * seconds; the first primary wins.
 */
export function openPrimary(options: DatabaseOptions) {
  const url = parseConnectionUrl(options.url);
  const hosts = inOrder(url.hosts);
  const failures = new Map<Host, Error>();
  const found = Promise.withResolvers<Sql>();
  /** Aborted when a primary is found or the caller gives up: all other clients are then ended. */
  const over = new AbortController();
  let primary: Host | null = null;
  let timer: NodeJS.Timeout | undefined;

  function tryNext(): void {
    clearTimeout(timer);
    const host = hosts.shift();
    if (host === undefined || over.signal.aborted) return;
    if (hosts.length > 0) timer = setTimeout(tryNext, NEXT_HOST_DELAY);
    const onClose = () => {
      if (host === primary) options.onClose?.();
    };
    tryHost({ ...options, onClose }, host, over.signal).then(
      (sql) => take(host, sql),
      (error) => fail(host, error),
    );
  }

  function take(host: Host, sql: Sql): void {
    if (over.signal.aborted) return void sql.end({ timeout: 0 });
    stop();
    primary = host;
    lastPrimaries.set(keyOf(url.hosts), addressOf(host));
    found.resolve(sql);
  }

  function fail(host: Host, error: Error): void {
    failures.set(host, error);
    if (failures.size < url.hosts.length) tryNext();
    else if (url.hosts.length === 1 && !(error instanceof StandbyError)) found.reject(error);
    else found.reject(new NoPrimaryError(url.hosts, failures));
  }

  function stop(): void {
    clearTimeout(timer);
    over.abort();
  }

  /** Ends the connection like the driver's `end`. With a `timeout` of 0 it ends at once, even while it is being opened. */
  async function end(how: { readonly timeout: number }): Promise<void> {
    if (how.timeout === 0) {
      stop();
      found.reject(Object.assign(new Error("the connection attempt was cancelled"), { code: "CONNECTION_ENDED" }));
    }
    await found.promise.then(
      (sql) => sql.end(how),
      () => undefined,
    );
  }

  // A caller that ends it at once does not await it.
  found.promise.catch(() => undefined);
  tryNext();
  return {
    /** Resolves with one connection to a primary, which never reconnects. Rejects with the failure of each host. */
    ready: found.promise,
    end,
  };
}

/** Runs work over a new connection to the primary, which ends after it. */
export async function withPrimary<T>(options: DatabaseOptions, work: (sql: Sql) => PromiseLike<T>): Promise<T> {
  const opening = openPrimary(options);
  try {
    return await work(await opening.ready);
  } catch (error) {
    throw databaseError(error);
  } finally {
    await opening.end({ timeout: END_TIMEOUT });
  }
}

/** Opens a connection to one host. Ends it when the signal aborts before it is open, and unless the server is a primary. */
async function tryHost(options: DatabaseOptions, host: Host, signal: AbortSignal): Promise<Sql> {
  let isClosed = false;
  const onClose = () => {
    isClosed = true;
    options.onClose?.();
  };
  const sql = connectTo({ ...options, onClose }, host);
  const drop = () => void sql.end({ timeout: 0 });
  signal.addEventListener("abort", drop);
  try {
    const asked = sql.unsafe<OpenedSession[][]>(openingStatements(ownSettings(options)));
    const opened = firstRow((await firstAnswer(asked, CONNECT_TIMEOUT * 1000)).at(-1) ?? []);
    if (opened.isStandby) throw new StandbyError("is a standby (in recovery)");
    if (isClosed) throw Object.assign(new Error("closed the connection"), { code: "CONNECTION_CLOSED" });
    rememberSchema(sql, opened);
    return sql;
  } catch (error) {
    drop();
    throw error;
  } finally {
    signal.removeEventListener("abort", drop);
  }
}

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

/** Rejects with an error that `describeFailure` knows when the first answer of a host takes longer than these milliseconds. */
export function firstAnswer<T>(answer: PromiseLike<T>, timeout: number): Promise<T> {
  return withTimeout(answer, timeout, () => {
    throw Object.assign(new Error("did not respond in time"), { code: "CONNECT_TIMEOUT" });
  });
}

/** Predicates for the common error codes of Node and the driver, whose own messages repeat the host. */
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
function inOrder(hosts: readonly Host[]): Host[] {
  const last = lastPrimaries.get(keyOf(hosts));
  return hosts.toSorted((a, b) => Number(addressOf(b) === last) - Number(addressOf(a) === last));
}

function keyOf(hosts: readonly Host[]): string {
  return hosts.map(addressOf).join();
}

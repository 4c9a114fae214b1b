import { Socket } from "node:net";
import postgres, { type Notice, type Sql } from "postgres";
import { backoffDelay } from "../../lib/backoff.ts";
import { openClientSocket } from "./client-socket.ts";
import { type Host, parseConnectionUrl, socketFile } from "./connection-url.ts";
import { checkReported, STARTUP_SETTINGS } from "./session-settings.ts";
import { VALUE_TYPES } from "./value-types.ts";

export interface DatabaseOptions {
  /** With one host or several (`connection-url.ts`). */
  readonly url: string;
  /** Statement timeout in milliseconds. */
  readonly statementTimeout: number;
  /**
   * Whether statements are prepared and their plans kept: for statements that find rows by an index. False for lists, whose filters produce
   * an unbounded number of statements, and for statements that scan a whole table.
   */
  readonly prepare: boolean;
  /** `application_name` in `pg_stat_activity`; by default `keyhold`. */
  readonly applicationName?: string;
  /** Called for each notification. The driver's own `listen` hides the loss of its connection. */
  readonly onNotification?: (channel: string, payload: string) => void;
  readonly onNotice?: (notice: Notice) => void;
  readonly onClose?: () => void;
}

/** Seconds. A backend starts in milliseconds, on a busy machine in tenths of a second. */
export const CONNECT_TIMEOUT = 5;

/** The driver's own backoff grows to 20 s, and callers wait with it. */
const BACKOFF = { first: 50, max: 500 };

/**
 * Opens a socket. `host` and `port` are for the driver: TLS checks the name by them. With TCP_NODELAY like libpq; otherwise a statement
 * sent behind another waits up to 40 ms for an acknowledgement.
 */
function openSocket(to: Host): Socket {
  if (to.name.startsWith("/")) return openClientSocket({ path: socketFile(to) });
  const [host, port] = [to.name, to.port];
  return Object.assign(openClientSocket({ host, port, noDelay: true }), { host, port });
}

/** Returns a socket that fails. The driver never answers if no socket can be created (postgres 3.4.9, createSocket in connection.js). */
function lostSocket(): Socket {
  const socket = new Socket();
  const lost = Object.assign(new Error("the connection was closed"), { code: "CONNECTION_CLOSED" });
  setImmediate(() => socket.destroy(lost));
  return socket;
}

/**
 * Creates a driver client for one connection to one host, which is opened on first use and never reconnected. Does not check whether the
 * server is a primary: see `openPrimary`. Notices go to `onNotice` and to no log.
 */
export function connectTo(options: DatabaseOptions, host: Host): Sql {
  let isEnded = false;
  let socket: Socket | null = null;
  const sql = createClient(options, host, () => {
    if (isEnded) throw new Error("the client was closed");
    if (socket !== null) return lostSocket();
    socket = openSocket(host);
    return socket;
  });
  const { end } = sql;
  // The driver makes a scheduled reconnect attempt in spite of `end` (3.4.9), and does not cancel one in progress; both keep the process
  // alive.
  sql.end = async (how) => {
    isEnded ||= how?.timeout === 0;
    await end(how);
    isEnded = true;
    // A peer that is silent never closes its side, and the half-closed socket would keep the process alive.
    if (socket?.connecting) socket.destroy();
    else socket?.destroySoon();
  };
  return sql;
}

/** Values of `sslmode` with which the driver checks neither certificate nor name. */
export const UNCHECKED_TLS_MODES: readonly string[] = ["allow", "prefer", "require"];

/**
 * With several hosts or `target_session_attrs` (from the URL or PGTARGETSESSIONATTRS) the driver swallows errors and retries for ever
 * (3.4.9, `error` and `tryNext` in connection.js), so it gets one host, and its value of that variable is overridden. It checks
 * certificates of IP addresses against `localhost` unless it is given the name.
 */
function createClient(options: DatabaseOptions, host: Host, socket: () => Socket): Sql {
  const { withoutHosts, database } = parseConnectionUrl(options.url);
  const parsed = postgres(withoutHosts, driverOptions(options)).options;
  const isChecked = parsed.ssl !== false && !UNCHECKED_TLS_MODES.includes(String(parsed.ssl));
  const own = {
    ...{ host: [host.name], port: [host.port], socket, target_session_attrs: null },
    path: host.name.startsWith("/") ? socketFile(host) : false,
    database: database || parsed.database,
    ...(isChecked ? { ssl: { host: host.name } } : {}),
  };
  // The driver accepts parsed options as they are, which its types do not declare.
  return postgres({ ...parsed, ...own } as object);
}

/** Settings in which connections differ. As texts, because the driver does not send the number 0 (3.4.9, StartupMessage). */
export function ownSettings({ statementTimeout, prepare }: DatabaseOptions): Record<string, string> {
  return {
    statement_timeout: String(statementTimeout),
    idle_in_transaction_session_timeout: String(statementTimeout),
    // The estimated cost of a list without its limit, and of an unavoidable scan before PostgreSQL 18, would trigger it.
    jit: "off",
    // A generic plan made while a table was small is kept until the table is analyzed. For a small table the planner prefers a sequential
    // scan, so it must not consider one.
    ...(prepare && { enable_seqscan: "off" }),
  };
}

function driverOptions(options: DatabaseOptions): postgres.Options<Record<string, postgres.PostgresType>> {
  const { prepare, applicationName = "keyhold" } = options;
  return {
    // The driver accepts `onnotify`, which its types do not declare.
    ...{ onnotify: options.onNotification },
    onclose: () => options.onClose?.(),
    target_session_attrs: "primary",
    max: 1,
    prepare,
    connect_timeout: CONNECT_TIMEOUT,
    // In seconds.
    backoff: (failures) => backoffDelay(failures + 1, BACKOFF) / 1000,
    max_lifetime: null,
    fetch_types: false,
    types: VALUE_TYPES,
    transform: { column: { from: postgres.toCamel, to: postgres.fromCamel } },
    onparameter: checkReported,
    onnotice: options.onNotice ?? (() => {}),
    connection: {
      application_name: applicationName,
      ...STARTUP_SETTINGS,
      ...ownSettings(options),
    },
  };
}

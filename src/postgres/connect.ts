import { Socket } from "node:net";
import postgres, { type Notice, type Sql } from "postgres";
import { ARRAY_TYPES } from "./array-types.ts";
import { openClientSocket } from "./client-socket.ts";
import { type Host, parseConnectionUrl, socketFile } from "./connection-url.ts";

export interface DatabaseOptions {
  /** With one host or several (`connection-url.ts`). */
  readonly url: string;
  /** Connections at the most. */
  readonly maxConnections: number;
  /** After this the database cancels a statement, in milliseconds. */
  readonly statementTimeout: number;
  /**
   * Whether connections prepare each statement and keep its plan: for statements that find rows by an index. Not for lists, whose
   * filters make endlessly many statements, nor for statements that read a whole table.
   */
  readonly prepare: boolean;
  /** What the connections call themselves in `pg_stat_activity`; by default `keyhold`. */
  readonly applicationName?: string;
  /** Told of what connections that LISTEN hear. Not the driver's own `listen`, which hides the loss of its connection. */
  readonly onNotification?: (channel: string, payload: string) => void;
  /** Told of the notices of the database, by which it says more of a statement than that it is done. */
  readonly onNotice?: (notice: Notice) => void;
  /** Told of every connection that has ended. */
  readonly onClose?: () => void;
}

/** Seconds. A backend is there in milliseconds; on a machine that is busy with others, in tenths of a second. */
export const CONNECT_TIMEOUT = 5;

/** Seconds until the next attempt to connect. The driver's own wait grows to 20 s, and whoever asks meanwhile waits with it. */
function reconnectDelay(failures: number): number {
  return Math.min(0.05 * 2 ** failures, 0.5);
}

/**
 * `host` and `port` are for the driver: TLS checks the name by them. Without delay, as libpq has it: else a statement that is sent
 * behind another waits for the server to acknowledge that one, up to 40 ms.
 */
function openSocket(to: Host): Socket {
  if (to.name.startsWith("/")) return openClientSocket({ path: socketFile(to) });
  const [host, port] = [to.name, to.port];
  return Object.assign(openClientSocket({ host, port, noDelay: true }), { host, port });
}

/** A socket that is lost. The driver never answers again where none can be made (postgres 3.4.9, createSocket in connection.js). */
function lostSocket(): Socket {
  const socket = new Socket();
  const lost = Object.assign(new Error("the connection was closed"), { code: "CONNECTION_CLOSED" });
  setImmediate(() => socket.destroy(lost));
  return socket;
}

/**
 * Creates a client of the driver for one connection to one host, which is opened when first used and never again. Whether the server is a
 * primary is not checked: see `openPrimary`. Notices of the database go to `onNotice` and to no log.
 */
export function connectTo(options: DatabaseOptions, host: Host): Sql {
  let isEnded = false;
  let socket: Socket | null = null;
  const sql = createClient(options, host, () => {
    if (isEnded) throw new Error("the client was ended");
    if (socket !== null) return lostSocket();
    socket = openSocket(host);
    return socket;
  });
  const { end } = sql;
  // An attempt to connect that was to follow a failed one is made by the driver all the same (3.4.9), and keeps the process alive.
  // One that is being made is left alone by it, and does so too.
  sql.end = async (how) => {
    isEnded ||= how?.timeout === 0;
    await end(how);
    isEnded = true;
    if (socket?.connecting) socket.destroy();
  };
  return sql;
}

/**
 * A plan that was made while a table was small is kept when it has grown, until the table is analyzed. The planner takes a
 * sequential scan for a small table, so it must not consider one. Without JIT, which a scan that cannot be avoided would start
 * before PostgreSQL 18, by its pretended cost.
 */
const KEPT_PLANS = { enable_seqscan: "off", jit: "off" };

/** Modes of `sslmode` in which the driver checks neither certificate nor name. */
export const UNCHECKED_TLS_MODES: readonly string[] = ["allow", "prefer", "require"];

/**
 * The driver would take several hosts and `target_session_attrs` itself, from the URL and from PGTARGETSESSIONATTRS: it swallows errors
 * then, and tries for ever (3.4.9, `error` and `tryNext` in connection.js). So it has one host, and its reading of that variable is
 * overwritten. It checks certificates of IP addresses against `localhost`, unless it is given the name.
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
  // What the driver has parsed it takes again as it is, which its types do not know.
  return postgres({ ...parsed, ...own } as object);
}

function driverOptions(options: DatabaseOptions): postgres.Options<Record<string, postgres.PostgresType>> {
  const { maxConnections, statementTimeout, prepare, applicationName = "keyhold" } = options;
  return {
    // The driver takes `onnotify` too, but its types do not know it.
    ...{ onnotify: options.onNotification },
    onclose: () => options.onClose?.(),
    target_session_attrs: "primary",
    max: maxConnections,
    prepare,
    connect_timeout: CONNECT_TIMEOUT,
    backoff: reconnectDelay,
    max_lifetime: null,
    fetch_types: false,
    types: ARRAY_TYPES,
    onnotice: options.onNotice ?? (() => {}),
    connection: {
      application_name: applicationName,
      statement_timeout: statementTimeout,
      idle_in_transaction_session_timeout: statementTimeout,
      TimeZone: "UTC",
      ...(prepare ? KEPT_PLANS : {}),
    },
  };
}

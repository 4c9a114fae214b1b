import type { Socket } from "node:net";
import postgres, { type Sql } from "postgres";
import { ARRAY_TYPES } from "./array-types.ts";
import { openClientSocket } from "./embedded/client-socket.ts";
import { socketOptions } from "./embedded/socket.ts";

export interface DatabaseOptions {
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
  /** Told of every connection that has ended. */
  readonly onClose?: () => void;
}

/** Seconds. A backend is there in milliseconds; on a machine that is busy with others, in tenths of a second. */
const CONNECT_TIMEOUT = 5;

/** Seconds until the next attempt to connect. The driver's own wait grows to 20 s, and whoever asks meanwhile waits with it. */
function reconnectDelay(failures: number): number {
  return Math.min(0.05 * 2 ** failures, 0.5);
}

/** What the driver tells of the server when it asks for a socket: several hosts stand in one URL, separated by commas. */
interface Server {
  readonly host: readonly string[];
  readonly port: readonly number[];
}

/**
 * Any of the hosts, as the driver would in turn. `host` and `port` are for the driver: TLS checks the name by them. Without delay, as
 * libpq has it: else a statement that is sent behind another waits for the server to acknowledge that one, up to 40 ms.
 */
function openTcp(server: Server): Socket {
  const place = Math.floor(Math.random() * server.host.length);
  const [host = "", port = 5432] = [server.host[place], server.port[place]];
  return Object.assign(openClientSocket({ host, port, noDelay: true }), { host, port });
}

/** A client of the driver, which connects when first used. Notices of the database are not for the log. */
export function connect(options: DatabaseOptions): Sql {
  const { url } = options;
  const { socket } = { socket: openTcp, ...socketOptions(url) };
  let isEnded = false;
  const sql = createClient(options, (server) => {
    if (isEnded) throw new Error("the client was ended");
    return socket(server);
  });
  const { end } = sql;
  // An attempt to connect that was to follow a failed one is made by the driver all the same (3.4.9), and keeps the process alive.
  sql.end = async (how) => {
    isEnded ||= how?.timeout === 0;
    await end(how);
    isEnded = true;
  };
  return sql;
}

/**
 * A plan that was made while a table was small is kept when it has grown, until the table is analyzed. The planner takes a
 * sequential scan for a small table, so it must not consider one. Without JIT, which a scan that cannot be avoided would start
 * before PostgreSQL 18, by its pretended cost.
 */
const KEPT_PLANS = { enable_seqscan: "off", jit: "off" };

function createClient(options: DatabaseOptions, socket: (server: Server) => Socket): Sql {
  const { url, maxConnections, statementTimeout, prepare, applicationName = "keyhold" } = options;
  return postgres(url, {
    // The driver takes `onnotify` too, but its types do not know it.
    ...{ onnotify: options.onNotification },
    onclose: () => options.onClose?.(),
    ...{ ...socketOptions(url), socket },
    max: maxConnections,
    prepare,
    connect_timeout: CONNECT_TIMEOUT,
    backoff: reconnectDelay,
    fetch_types: false,
    types: ARRAY_TYPES,
    onnotice: () => {},
    connection: {
      application_name: applicationName,
      statement_timeout: statementTimeout,
      idle_in_transaction_session_timeout: statementTimeout,
      TimeZone: "UTC",
      ...(prepare ? KEPT_PLANS : {}),
    },
  });
}

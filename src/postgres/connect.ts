import postgres, { type Sql } from "postgres";
import { ARRAY_TYPES } from "./array-types.ts";
import { socketOptions } from "./embedded/socket.ts";

export interface DatabaseOptions {
  readonly url: string;
  /** Connections at the most. */
  readonly maxConnections: number;
  /** After this the database cancels a statement, in milliseconds. */
  readonly statementTimeout: number;
  /** Whether connections keep the plan of each statement that they have run: not for statements of endlessly many shapes. */
  readonly prepare: boolean;
}

/** Seconds. */
const CONNECT_TIMEOUT = 10;

/** Seconds between two attempts to connect. The driver's own wait grows to 20 s, and whoever asks meanwhile waits with it. */
const RECONNECT_DELAY = 0.05;

/** A pool of connections; it connects when first used. Notices of the database are not for the log. */
export function connect({ url, maxConnections, statementTimeout, prepare }: DatabaseOptions): Sql {
  return postgres(url, {
    ...socketOptions(url),
    max: maxConnections,
    prepare,
    connect_timeout: CONNECT_TIMEOUT,
    backoff: () => RECONNECT_DELAY,
    fetch_types: false,
    types: ARRAY_TYPES,
    onnotice: () => {},
    connection: {
      application_name: "keyhold",
      statement_timeout: statementTimeout,
      idle_in_transaction_session_timeout: statementTimeout,
      TimeZone: "UTC",
    },
  });
}

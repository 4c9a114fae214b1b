import postgres, { type Sql } from "postgres";
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

/** A pool of connections; it connects when first used. Notices of the database are not for the log. */
export function connect({ url, maxConnections, statementTimeout, prepare }: DatabaseOptions): Sql {
  return postgres(url, {
    ...socketOptions(url),
    max: maxConnections,
    prepare,
    connect_timeout: CONNECT_TIMEOUT,
    onnotice: () => {},
    connection: {
      application_name: "keyhold",
      statement_timeout: statementTimeout,
      idle_in_transaction_session_timeout: statementTimeout,
      TimeZone: "UTC",
    },
  });
}

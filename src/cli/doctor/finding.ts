import type { Clock } from "../../lib/clock.ts";
import type { Database } from "../../postgres/connection/pool.ts";
import type { Config } from "../../server/config/config.ts";
import type { Rings } from "../../server/root-secrets/rings.ts";

/** The result of a check, for people and programs. Contains no secret. */
export interface Finding {
  readonly level: "ok" | "warning" | "error";
  readonly message: string;
  /** What to do; null for `ok`. */
  readonly remedy: string | null;
}

/** The input of a check. */
export interface CheckContext {
  readonly config: Config;
  readonly clock: Clock;
  /** The server keys; null if there is no root secret or it cannot be read. */
  readonly rings: Rings | null;
}

/** The input of a check of a reachable database. */
export interface DatabaseContext extends CheckContext {
  readonly database: Database;
  /** The connection URL with the role of the servers. */
  readonly url: string;
  /** The migrations that the schema lacks, or why the role cannot read them. */
  readonly pending: readonly string[] | Error;
  /** Whether the database has the schema of this version, readable by the role. */
  readonly hasSchema: boolean;
}

/** A check. It changes nothing; an exception becomes an error finding. */
export type Check<P extends CheckContext = CheckContext> = (context: P) => Promise<readonly Finding[]>;

export function ok(message: string): Finding {
  return { level: "ok", message, remedy: null };
}

export function warning(message: string, remedy: string): Finding {
  return { level: "warning", message, remedy };
}

export function error(message: string, remedy: string): Finding {
  return { level: "error", message, remedy };
}

import type { Clock } from "../../lib/clock.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Config } from "../../server/config/config.ts";
import type { Rings } from "../../server/root-secrets/rings.ts";

export type Level = "ok" | "warning" | "error";

/** What a check found, for people and for programs. Neither text holds a secret. */
export interface Finding {
  readonly level: Level;
  readonly message: string;
  /** What to do about it; null when all is well. */
  readonly remedy: string | null;
}

/** What is examined. */
export interface CheckContext {
  readonly config: Config;
  readonly clock: Clock;
  /** The server keys; null: there is no root secret, or it cannot be read. */
  readonly rings: Rings | null;
}

/** The same with a database that answers. */
export interface Answering extends CheckContext {
  readonly database: Database;
  /** Of the role that servers have. */
  readonly url: string;
  /** Whether the database has the tables of this version, and the role may read them. */
  readonly hasSchema: boolean;
}

/** Examines and changes nothing. What it throws becomes an error that it could not be examined. */
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

import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../server/config/config.ts";
import type { Rings } from "../../server/root-secrets/rings.ts";
import type { openDatabase } from "./database.ts";

/** The result of a check, for people and programs. Contains no secret. */
export interface Finding {
  readonly level: "ok" | "warning" | "error";
  readonly message: string;
  /** What to do; null for `ok`. */
  readonly remedy: string | null;
}

export interface CheckContext {
  readonly config: Config;
  readonly clock: Clock;
  /** The server keys; null if there is no root secret or it cannot be read. */
  readonly rings: Rings | null;
}

/** The input of a check of a reachable database. */
export type DatabaseContext = CheckContext & Exclude<Awaited<ReturnType<typeof openDatabase>>, Finding>;

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

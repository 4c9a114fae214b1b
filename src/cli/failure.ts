import { CommanderError } from "commander";
import { KeyholdError } from "../errors.ts";

/** Exit status: 0 done, 1 failed, 2 wrong usage or configuration. */
export function exitStatus(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  return error instanceof KeyholdError && error.code === "INVALID_ARGUMENT" ? 2 : 1;
}

/** What went wrong, and what that comes from. An error of several attempts to connect has a code and no message. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const message = error.message || ("code" in error ? String(error.code) : error.name);
  return error.cause instanceof Error ? `${message}: ${explain(error.cause)}` : message;
}

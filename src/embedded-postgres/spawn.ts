import type { ChildProcess, SpawnOptions, StdioOptions } from "node:child_process";
import { spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { KeyholdError } from "../domain/errors.ts";
import type { RunAs } from "./os-user.ts";
import { childEnvironment } from "./process.ts";

/** Starts a program as the user in a new session, so that it does not receive a terminal's Ctrl-C. */
export function startProgram(runAs: RunAs, command: readonly string[], stdio: StdioOptions): ChildProcess {
  const [file = "", ...args] = [...runAs.prefix, ...command];
  const options: SpawnOptions = { ...runAs.ids, cwd: "/", env: childEnvironment, detached: true, stdio };
  return spawn(file, args, options);
}

/**
 * Runs a program to its end, with `input` on its stdin.
 *
 * @throws KeyholdError `DATABASE_UNAVAILABLE` with its output when it fails.
 */
export async function runProgram(runAs: RunAs, command: readonly string[], input: string): Promise<void> {
  const child = startProgram(runAs, command, ["pipe", "pipe", "pipe"]);
  child.stdin?.on("error", () => {}).end(input);
  const [code, out, err] = await Promise.all([exitOf(child), textOf(child.stdout), textOf(child.stderr)]);
  if (code === "exit code 0") return;
  const program = command[0]?.split("/").at(-1);
  throw new KeyholdError("DATABASE_UNAVAILABLE", `${program} failed with ${code}: ${out}${err}`.trim());
}

/** Resolves with a description of how the process ended, or why it could not be started. */
export function exitOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(`error "${error.message}"`));
    child.once("exit", (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
}

function textOf(stream: Readable | null): Promise<string> {
  return stream === null ? Promise.resolve("") : text(stream);
}

import type { Command } from "commander";

/** For every command that has an output. Errors are then JSON too, on standard error. */
export function withJson(command: Command): Command {
  return command.option("--json", "output, and errors, as JSON");
}

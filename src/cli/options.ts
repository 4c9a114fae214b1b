import { type Command, Option } from "commander";
import { invalidArgument } from "../domain/errors.ts";
import { parseScopes } from "./scopes.ts";

/** For every command that has an output. Errors are then JSON too, on standard error. */
export function withJson(command: Command): Command {
  return command.option("--json", "output, and errors, as JSON");
}

/** Returns the option `--scope`, which may be repeated; each value is read by `parseScopes`. */
export function scopeOption(description: string): Option {
  return new Option("--scope <scope...>", description).argParser((text: string, earlier: string[] = []) => {
    const scopes = parseScopes("--scope", text);
    if (scopes.length === 0) throw invalidArgument("--scope", "is empty");
    return [...earlier, ...scopes];
  });
}

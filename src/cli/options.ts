import { type Command, Option } from "commander";
import { invalidArgument } from "../domain/errors.ts";
import { parseScopes } from "./scopes.ts";

/** Adds `--json`, with which errors are JSON on stderr too. */
export function withJson(command: Command): Command {
  return command.option("--json", "print output and errors as JSON");
}

/** Returns the repeatable option `--scope`, parsed by `parseScopes`. */
export function scopeOption(description: string): Option {
  return new Option("--scope <scope...>", description).argParser((text: string, earlier: string[] = []) => {
    const scopes = parseScopes("--scope", text);
    if (scopes.length === 0) throw invalidArgument("--scope", "is empty");
    return [...earlier, ...scopes];
  });
}

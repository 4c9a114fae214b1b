import { type Command, InvalidArgumentError } from "commander";
import { invalidArgument } from "../../domain/errors.ts";
import { scopeOption, withJson } from "../options.ts";

export function examples(...lines: readonly string[]): string {
  return ["", "Examples:", ...lines.map((line) => `  ${line}`)].join("\n");
}

export function withRemote(command: Command): Command {
  return withJson(command)
    .option("--url <url>", "server URL (default: KEYHOLD_URL, or http://127.0.0.1:4420)")
    .option("--token-file <file>", "file with the admin token (default: KEYHOLD_TOKEN_FILE, or KEYHOLD_TOKEN)")
    .option("--ca-file <file>", "additional trusted certificates, PEM (default: KEYHOLD_CA_FILE)");
}

export function withSecret(command: Command): Command {
  return command.option("--out <file>", "write the secret to a new file (mode 0600) instead of stdout");
}

export function withCredential(command: Command, when = ""): Command {
  return command.option("--credential-file <file>", `${when}file with the credential (default: -, stdin)`);
}
export function withKeyFields(command: Command): Command {
  return command
    .option("--name <name>", "display name")
    .option("--actor <actor_id>", "owner of the key")
    .addOption(scopeOption("scopes of the key"))
    .option("--ttl <duration>", "lifetime such as 90d (default: no expiry)")
    .option("--metadata <name=value...>", "metadata");
}

export function requireKeyFields<T extends { readonly name?: string; readonly actor?: string }>(options: T) {
  const { name, actor } = options;
  if (name === undefined) throw invalidArgument("--name", "is required");
  if (actor === undefined) throw invalidArgument("--actor", "is required");
  return { ...options, name, actor };
}

export function positiveInteger(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Must be a whole number from 1.");
}

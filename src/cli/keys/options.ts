import { type Command, InvalidArgumentError } from "commander";
import { invalidArgument } from "../../domain/errors.ts";
import { scopeOption, withJson } from "../options.ts";

export function examples(...lines: readonly string[]): string {
  return ["", "Examples:", ...lines.map((line) => `  ${line}`)].join("\n");
}

export function withRemote(command: Command): Command {
  return withJson(command)
    .option("--url <url>", "the server; without it KEYHOLD_URL, or http://127.0.0.1:4420")
    .option("--token-file <file>", "file with the admin token; without it KEYHOLD_TOKEN_FILE, or KEYHOLD_TOKEN")
    .option("--ca-file <file>", "certificates (PEM) to trust as well; without it KEYHOLD_CA_FILE");
}

export function withSecret(command: Command): Command {
  return command.option("--out <file>", "write the secret to this new file (mode 0600) instead of showing it");
}

export function withCredential(command: Command, when = ""): Command {
  return command.option(
    "--credential-file <file>",
    `${when}file with the credential; without it, or with -, standard input`,
  );
}

export function withDraft(command: Command): Command {
  return command
    .option("--name <name>", "label for people")
    .option("--actor <actor_id>", "owner of the key")
    .addOption(scopeOption("what the key may do"))
    .option("--ttl <duration>", "lifetime such as 90d; without it the key does not expire")
    .option("--metadata <name=value...>", "free-form texts");
}

export function requireDraft<T extends { readonly name?: string; readonly actor?: string }>(options: T) {
  const { name, actor } = options;
  if (name === undefined) throw invalidArgument("--name", "is required");
  if (actor === undefined) throw invalidArgument("--actor", "is required");
  return { ...options, name, actor };
}

export function positiveInteger(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number from 1.");
}

import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Command, InvalidArgumentError, Option } from "commander";
import { invalidArgument } from "../domain/errors.ts";
import { parseTimestamp } from "../filter/timestamp.ts";
import { parseCidr } from "../lib/cidr.ts";
import { quotaOption, rateLimitOption } from "./limit-options.ts";
import { parseScopes } from "./scopes.ts";

/** Adds `--json`, with which errors are JSON on stderr too. */
export function withJson(command: Command): Command {
  return command.option("--json", "print output and errors as JSON");
}

export function withRemote(command: Command): Command {
  return withJson(command)
    .option("--url <url>", "server URL (default: KEYHOLD_URL, or http://127.0.0.1:4420)")
    .option("--token-file <file>", "file with the admin token (default: KEYHOLD_TOKEN_FILE, or KEYHOLD_TOKEN)")
    .option("--ca-file <file>", "file of additional trusted certificates in PEM format (default: KEYHOLD_CA_FILE)");
}

/** Adds `--output`, which prints one field for scripts. */
export function withOutput(command: Command): Command {
  return command.addOption(
    new Option("--output <field>", "print only this field of each key, such as id, name or metadata.plan").conflicts(
      "json",
    ),
  );
}

export function withSecret(command: Command): Command {
  return command.option("--out <file>", "write the secret to a new file (mode 0600) instead of stdout");
}

export function withCredential(command: Command, when = ""): Command {
  return command.option("--credential-file <file>", `${when}file with the credential (default: stdin)`);
}

/** Adds the options that describe a use of the credential: the address of the client, scopes and the audience. */
export function withPresentation(command: Command): Command {
  return command
    .option("--client-ip <address>", "address of the client that presents the credential")
    .addOption(scopeOption("scopes that the credential must have", [], "--require-scope"))
    .option("--audience <service>", "the service to which the credential is presented");
}

export function withKeyFields(command: Command): Command {
  return command
    .option("--name <name>", "display name")
    .option("--actor <actor_id>", "owner of the key")
    .addOption(scopeOption("scopes of the key"))
    .addOption(
      ttlOption("lifetime, such as 90d (default: the server's default lifetime, which is no expiry unless configured)"),
    )
    .addOption(timeOption("--expire-time", "when the key expires, such as 2030-01-31T12:00:00Z"))
    .addOption(allowIpOption("addresses from which the key is accepted, such as 203.0.113.0/24 (default: any)"))
    .addOption(rateLimitOption("rate limits of the key"))
    .addOption(quotaOption("quotas of the key"))
    .addOption(pairsOption("--metadata", "metadata"));
}

export interface AdjustmentOptions {
  readonly add?: number;
  readonly subtract?: number;
}

/** Adds the name of a quota, and what to change. */
export function withAdjustment(command: Command): Command {
  return command
    .description("change what is used of a quota in its current period")
    .argument("<name>", "name of the quota")
    .addOption(new Option("--add <count>", "verifications to add").argParser(positiveInteger).conflicts("subtract"))
    .option("--subtract <count>", "verifications to subtract", positiveInteger);
}

/** Returns the tokens to add. */
export function deltaOf({ add = 0, subtract = 0 }: AdjustmentOptions): number {
  const delta = add - subtract;
  if (delta === 0) throw invalidArgument("--add", "is required unless --subtract is set");
  return delta;
}

export function requireKeyFields<T extends { readonly name?: string; readonly actor?: string }>(options: T) {
  const { name, actor } = options;
  if (name === undefined) throw invalidArgument("--name", "is required");
  if (actor === undefined) throw invalidArgument("--actor", "is required");
  return { ...options, name, actor };
}

/** Returns a repeatable option of scopes, parsed by `parseScopes`. Help and completion list the choices. */
export function scopeOption(description: string, choices: readonly string[] = [], flag = "--scope"): Option {
  const option = new Option(`${flag} <scope...>`, description);
  if (choices.length > 0) option.choices(choices);
  return option.argParser((text: string, earlier: string[] = []) => {
    const scopes = parseScopes(flag, text);
    if (scopes.length === 0) throw invalidArgument(flag, "is empty");
    return [...earlier, ...scopes];
  });
}

export function ttlOption(description: string): Option {
  return new Option("--ttl <duration>", description).conflicts("expireTime");
}

/** Returns an option with an RFC 3339 time, parsed into a `Timestamp`. */
export function timeOption(flag: string, description: string): Option {
  return new Option(`${flag} <time>`, description).argParser((text: string) => {
    const time = parseTimestamp(text);
    if (time === undefined) throw invalidArgument(flag, "must be an RFC 3339 time such as 2030-01-02T03:04:05Z");
    return timestampFromDate(new Date(time));
  });
}

/** Returns the repeatable option `--allow-ip` with CIDR blocks or addresses. */
export function allowIpOption(description: string): Option {
  return new Option("--allow-ip <cidr...>", description).argParser((text: string, earlier: string[] = []) => {
    const parsed = parseCidr(text);
    if ("problem" in parsed) throw invalidArgument("--allow-ip", parsed.problem);
    return [...earlier, parsed.cidr];
  });
}

/** Returns the restriction of a request; undefined without addresses. */
export function ipRestrictionTo(allowedCidrs: readonly string[] | undefined) {
  return allowedCidrs && { allowedCidrs: [...allowedCidrs] };
}

/** Returns a repeatable option with values of the form `name=value`, parsed into one object. */
export function pairsOption(flag: string, description: string, form = "name=value"): Option {
  type Pairs = Readonly<Record<string, string>>;
  return new Option(`${flag} <${form}...>`, description).argParser((text: string, earlier: Pairs = {}): Pairs => {
    const at = text.indexOf("=");
    if (at < 1) throw invalidArgument(flag, `must have the form ${form}`);
    const name = text.slice(0, at);
    if (Object.hasOwn(earlier, name)) throw invalidArgument(flag, "has a duplicate name");
    return { ...earlier, [name]: text.slice(at + 1) };
  });
}

export function positiveInteger(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Must be a whole number of at least 1.");
}

export function wholeNumber(text: string): number {
  return text === "0" ? 0 : positiveInteger(text);
}

export function examples(lines: readonly string[]): string {
  return ["", "Examples:", ...lines.map((line) => `  ${line}`)].join("\n");
}

import { type Command, Option } from "commander";
import { invalidArgument } from "../../domain/errors.ts";
import { addImport } from "../import/command.ts";
import { quotaOption, rateLimitOption } from "../limit-options.ts";
import {
  allowIpOption,
  examples,
  pairsOption,
  positiveInteger,
  requireKeyFields,
  scopeOption,
  timeOption,
  ttlOption,
  wholeNumber,
  withAdjustment,
  withCredential,
  withKeyFields,
  withOutput,
  withPresentation,
  withRemote,
  withSecret,
} from "../options.ts";

/** Adds `keyhold keys`. Each verb imports its code when it runs. */
export function addKeysCommands(program: Command): void {
  const keys = program.command("keys").description("issued and imported keys on a running server");
  addKeyCommands(keys);
  addCredentialCommands(keys);
  addBulk(keys);
  addImport(keys);
  for (const command of keys.commands) {
    if (WITH_OUTPUT.includes(command.name())) withOutput(command);
    withRemote(command).addHelpText("after", examples(EXAMPLES[command.name()] ?? []));
  }
}

const WITH_OUTPUT = [
  "issue",
  "list",
  "get",
  "update",
  "rotate",
  "end-grace",
  "revoke",
  "disable",
  "enable",
  "verify",
  "adjust-quota",
];

function addKeyCommands(keys: Command): void {
  withSecret(withKeyFields(keys.command("issue")))
    .description("create a key and print its secret, which is shown only once")
    .option("--restrict-to <actor_id...>", "for an admin token: restrict it to the keys of these actors (default: any)")
    .option(
      "--request-id <id>",
      "request id: repeating the command with the same value creates no second key; the repeated command fails and prints the id of the existing key",
    )
    .action(async (options) => (await import("./create.ts")).issue(requireKeyFields(options)));
  keys
    .command("list")
    .description("list keys (default: issued keys); --json prints one array")
    .addOption(new Option("--kind <kind>", "kind of keys").choices(["issued", "imported", "all"]).default("issued"))
    .addOption(new Option("--imported", "the same as --kind imported").implies({ kind: "imported" }))
    .option("--actor <actor_id>", "keys of this actor")
    .addOption(new Option("--status <status>", "keys with this status").choices(STATUSES))
    .option("--expiring-within <duration>", "keys that expire within this duration, such as 30d")
    .option("--unused-for <duration>", "keys older than this duration and not used within it, such as 90d")
    .addOption(
      new Option(
        "--not-adopted",
        "imported keys that are stored only as a hash, because they have not been verified yet",
      ).implies({ kind: "imported" }),
    )
    .option("--filter <expression>", "AIP-160 filter expression; other filter options narrow it further")
    .option(
      "--order-by <field>",
      'create_time, expire_time, last_used_time or name; append " desc" for descending order (default: expire_time with --expiring-within, last_used_time with --unused-for, otherwise "create_time desc")',
    )
    .option("--limit <count>", "maximum number of keys (default: all)", positiveInteger)
    .option("--page-size <count>", "keys per call to the server, up to 1000", positiveInteger, 200)
    .action(async (options) => (await import("./list.ts")).list(options));
  keys
    .command("get")
    .description("show an issued or imported key")
    .argument("<key_id>")
    .action(async (keyId, options) => (await import("./manage.ts")).get(keyId, options));
  keys
    .command("update")
    .description(
      "update an issued or imported key; each field that is set replaces the earlier value, including lists and metadata",
    )
    .argument("<key_id>")
    .option("--name <name>", "display name")
    .addOption(scopeOption("new scopes").conflicts("clearScopes"))
    .option("--clear-scopes", "remove all scopes")
    .addOption(pairsOption("--metadata", "new metadata").conflicts("clearMetadata"))
    .option("--clear-metadata", "remove all metadata")
    .addOption(ttlOption("new lifetime from now, such as 90d").conflicts("clearExpiry"))
    .addOption(timeOption("--expire-time", "new time at which the key expires").conflicts("clearExpiry"))
    .option("--clear-expiry", "remove the expiry of the key")
    .addOption(allowIpOption("new addresses from which the key is accepted").conflicts("allowAnyIp"))
    .option("--allow-any-ip", "accept the key from any address")
    .addOption(rateLimitOption("new rate limits").conflicts("clearRateLimits"))
    .option("--clear-rate-limits", "remove all rate limits")
    .addOption(quotaOption("new quotas").conflicts("clearQuotas"))
    .option("--clear-quotas", "remove all quotas")
    .action(async (keyId, options) => (await import("./manage.ts")).update(keyId, options));
  withSecret(keys.command("rotate"))
    .description("replace the secret of an issued key and print the new secret; it is shown only once")
    .argument("<key_id>")
    .option("--grace-period <duration>", "how long the old secret remains valid, such as 24h (default: 0)")
    .option(
      "--wait-idle <duration>",
      "after printing the new secret, wait until the old secret has not been used for this long, such as 24h, and end its grace period",
    )
    .action(async (keyId, options) => (await import("./create.ts")).rotate(keyId, options));
  keys
    .command("end-grace")
    .description("make all older secrets of an issued key invalid now, although their grace periods have not ended")
    .argument("<key_id>")
    .option("--wait-idle <duration>", "wait until no older secret has been used for this long, such as 24h")
    .action(async (keyId, options) => (await import("./manage.ts")).endGrace(keyId, options));
  withCredential(keys.command("revoke"), "with --self: ")
    .description("permanently revoke an issued or imported key, and every token derived from it")
    .argument("[key_id]")
    .addOption(new Option("--reason <reason>", "revocation reason").choices(REASONS))
    .option("--description <text>", "details of the reason, at most 1000 characters; not with --self")
    .option(
      "--include-descendants",
      "also revoke the keys created with this admin token, and recursively the keys created with those keys",
    )
    .option("--self", "revoke the key whose secret is read from stdin; no admin token is required")
    .action(async (keyId, options) => (await import("./manage.ts")).revoke(keyId, options));
  keys
    .command("disable")
    .description("disable an issued or imported key, and every token derived from it, until it is enabled again")
    .argument("<key_id>")
    .option("--reason <text>", "reason, at most 1000 characters")
    .action(async (keyId, options) => (await import("./manage.ts")).disable(keyId, options));
  keys
    .command("enable")
    .description("enable a disabled key, issued or imported")
    .argument("<key_id>")
    .action(async (keyId, options) => (await import("./manage.ts")).enable(keyId, options));
  keys
    .command("limits")
    .description("show the rate limits and quotas of a key and of its actor, and what is left of them")
    .argument("<key_id>")
    .action(async (keyId, options) => (await import("./manage.ts")).limits(keyId, options));
  withAdjustment(keys.command("adjust-quota").argument("<key_id>")).action(async (keyId, name, options) =>
    (await import("./manage.ts")).adjustQuota(keyId, name, options),
  );
  keys
    .command("delete")
    .description("delete an imported key; its raw key can then be imported again")
    .argument("<key_id>")
    .action(async (keyId, options) => (await import("./manage.ts")).deleteKey(keyId, options));
}

const STATUSES = ["active", "disabled", "expired", "revoked"];
const REASONS = ["key-compromise", "affiliation-changed", "superseded", "privilege-withdrawn"];

function addCredentialCommands(keys: Command): void {
  withPresentation(withCredential(keys.command("verify")))
    .description("verify a credential: an issued secret, raw key or derived token; exit status 7 if it is not valid")
    .argument("[-]", "read from stdin (default)", requireDash)
    .option("--no-cache", "read the key from the database")
    .action(async (_dash, options) => (await import("./credentials.ts")).verify(options));
  withPresentation(withCredential(keys.command("explain"), "without a key id: "))
    .description("list each verification check with its result and the reason; exit status 7 if any check fails")
    .argument("[key_id]", "key id; if omitted, the credential is read from stdin")
    .action(async (keyId, options) => (await import("./credentials.ts")).explain(keyId, options));
  withSecret(withCredential(keys.command("derive")))
    .description("exchange a credential for a short-lived token and print it")
    .argument("[-]", "read from stdin (default)", requireDash)
    .addOption(new Option("--algorithm <form>", "token format").choices(["jwt", "macaroon"]).default("jwt"))
    .option("--ttl <duration>", "lifetime (default: 1h)")
    .addOption(scopeOption("subset of the credential's scopes (default: all)"))
    .addOption(pairsOption("--claim", "claims to add; JSON values are parsed"))
    .option("--audience <service...>", "services that may accept the token (default: the audience of the credential)")
    .action(async (_dash, options) => (await import("./credentials.ts")).derive(options));
}

function addBulk(keys: Command): void {
  withBulk(keys.command("bulk-revoke"))
    .description("permanently revoke all keys that match a filter, and all tokens derived from those keys")
    .addOption(new Option("--reason <reason>", "revocation reason").choices(REASONS))
    .option("--description <text>", "details of the reason, at most 1000 characters")
    .action(async (options) => (await import("./bulk.ts")).bulkRevoke(await withDurations(options)));
  withBulk(keys.command("bulk-disable"))
    .description("disable all active keys that match a filter, and all tokens derived from those keys")
    .option("--reason <text>", "reason, at most 1000 characters")
    .action(async (options) => (await import("./bulk.ts")).bulkDisable(await withDurations(options)));
}

function withBulk(command: Command): Command {
  return command
    .requiredOption("--filter <expression>", "AIP-160 filter expression")
    .option("--validate-only", "print the number of matching keys, without changing any keys")
    .option("--expected-count <count>", "make no changes unless exactly this number of keys matches", wholeNumber)
    .option("--request-id <id>", "resume an interrupted command, using the request id that it printed")
    .option("--yes", "do not ask for confirmation; required if stdin is not a terminal")
    .option("--retry-for <duration>", "how long to retry while the server is unreachable", "10m");
}

async function withDurations<T extends { readonly retryFor: string }>(options: T) {
  const { parseDuration } = await import("../../domain/duration.ts");
  return { ...options, retryFor: parseDuration(options.retryFor, "--retry-for") };
}

const KEY_ID = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  issue: [
    "keyhold keys issue --name 'deploy bot' --actor team_42 --scope deploy read --ttl 90d",
    "keyhold keys issue --name ci --actor team_42 --metadata env=prod --out ci.secret",
    "keyhold keys issue --name office --actor team_42 --allow-ip 203.0.113.0/24 2001:db8::/32",
    "keyhold keys issue --name ci --actor team_42 --out ci.secret --output id",
    "keyhold keys issue --name free --actor team_42 --rate-limit requests=60/1m --quota monthly=10000/month",
  ],
  list: [
    "keyhold keys list --limit 20",
    `keyhold keys list --filter 'actor_id="team_42" AND status=KEY_STATUS_ACTIVE'`,
    "keyhold keys list --kind all --status active --expiring-within 30d",
    "keyhold keys list --imported --unused-for 90d --output id",
    "keyhold keys list --order-by 'last_used_time desc' --limit 20",
    "keyhold keys list --not-adopted --json | jq length",
  ],
  get: [`keyhold keys get ${KEY_ID}`],
  update: [
    `keyhold keys update ${KEY_ID} --scope read`,
    `keyhold keys update ${KEY_ID} --name 'old bot' --clear-metadata`,
    `keyhold keys update ${KEY_ID} --ttl 30d`,
  ],
  limits: [`keyhold keys limits ${KEY_ID}`],
  "adjust-quota": [`keyhold keys adjust-quota ${KEY_ID} monthly --subtract 500`],
  rotate: [
    `keyhold keys rotate ${KEY_ID} --grace-period 24h --out ci.secret`,
    `keyhold keys rotate ${KEY_ID} --grace-period 7d --wait-idle 24h --out ci.secret`,
  ],
  "end-grace": [`keyhold keys end-grace ${KEY_ID} --wait-idle 24h`],
  revoke: [
    `keyhold keys revoke ${KEY_ID} --reason key-compromise`,
    `keyhold keys revoke ${KEY_ID} --include-descendants --reason key-compromise`,
    "keyhold keys revoke --self --reason superseded < ci.secret",
  ],
  disable: [`keyhold keys disable ${KEY_ID} --reason 'unusual traffic'`],
  enable: [`keyhold keys enable ${KEY_ID}`],
  "bulk-revoke": [
    `keyhold keys bulk-revoke --filter 'actor_id="team_42"' --reason affiliation-changed`,
    `keyhold keys bulk-revoke --filter 'last_used_time < now() - "365d"' --validate-only`,
  ],
  "bulk-disable": [`keyhold keys bulk-disable --filter 'metadata.plan="trial"' --reason "the trial has ended" --yes`],
  delete: [`keyhold keys delete ${KEY_ID}`],
  verify: ["keyhold keys verify < ci.secret", "keyhold keys verify --credential-file ci.secret --json --no-cache"],
  explain: [
    `keyhold keys explain ${KEY_ID} --client-ip 203.0.113.7 --require-scope deploy`,
    "keyhold keys explain < ci.secret",
  ],
  derive: [
    "keyhold keys derive --ttl 15m --scope read < ci.secret",
    "keyhold keys derive --algorithm macaroon --out token < ci.secret",
  ],
  import: [
    "keyhold keys import keys.csv",
    "keyhold keys import keys.jsonl --dry-run",
    "zcat keys.jsonl.gz | keyhold keys import - --format jsonl --failures bad.jsonl",
    "keyhold keys import --name 'old portal' --actor team_42 --credential-file portal.key",
    "keyhold keys import hashes.csv --hash-algorithm sha256 --hash-encoding hex --map hash=key_hash name=label actor_id=owner",
    "keyhold keys import --name 'old portal' --actor team_42 --phc --lookup-prefix pk_6szfb < portal.hash",
  ],
};

/** Rejects any other argument without quoting it, since it may be a credential. */
function requireDash(text: string): string {
  if (text === "-") return text;
  throw invalidArgument(
    "CREDENTIAL",
    "must not be passed as an argument, because other users can read it; use stdin or --credential-file",
  );
}

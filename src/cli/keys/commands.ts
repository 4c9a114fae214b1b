import { type Command, InvalidArgumentError, Option } from "commander";
import { invalidArgument } from "../../errors.ts";
import { withJson } from "../options.ts";

/** `keyhold keys`: each verb loads what it needs when it runs. */
export function addKeysCommands(program: Command): void {
  const keys = program.command("keys").description("issued and imported keys, on a running server");
  for (const add of [
    addIssue,
    addList,
    addGet,
    addUpdate,
    addRotate,
    addRevoke,
    addDelete,
    addVerify,
    addDerive,
    addImport,
  ]) {
    withRemote(add(keys));
  }
}

function addIssue(keys: Command): Command {
  return withSecret(withDraft(keys.command("issue")))
    .description("make a key and show its secret, once")
    .option("--request-id <id>", "makes a repeat safe: it answers the key that was made the first time")
    .action(async (options) => (await import("./issue.ts")).issue(requireDraft(options)))
    .addHelpText(
      "after",
      examples(
        "keyhold keys issue --name 'deploy bot' --actor team_42 --scope deploy read --ttl 90d",
        "keyhold keys issue --name ci --actor team_42 --metadata env=prod --out ci.secret",
        "keyhold keys issue --name ci --actor team_42 --json | jq -r .issued_api_key.key_id",
      ),
    );
}

function addList(keys: Command): Command {
  return keys
    .command("list")
    .description("show the issued keys, newest first; with --json as one array")
    .option("--imported", "the imported keys instead")
    .option("--filter <expression>", "an expression of AIP-160")
    .option("--limit <count>", "show so many at the most; without it all", positiveInteger)
    .option("--page-size <count>", "keys of a call to the server, up to 1000", positiveInteger, 200)
    .action(async (options) => (await import("./list.ts")).list(options))
    .addHelpText(
      "after",
      examples(
        "keyhold keys list --limit 20",
        `keyhold keys list --filter 'actor_id="team_42" AND status=KEY_STATUS_ACTIVE'`,
        "keyhold keys list --imported --json | jq -r '.[].key_id'",
      ),
    );
}

function addGet(keys: Command): Command {
  return keys
    .command("get")
    .description("show a key of either kind")
    .argument("<key_id>")
    .action(async (keyId, options) => (await import("./get.ts")).get(keyId, options))
    .addHelpText("after", examples(`keyhold keys get ${KEY_ID}`));
}

function addUpdate(keys: Command): Command {
  return keys
    .command("update")
    .description("change a key of either kind; scopes and metadata are replaced as a whole")
    .argument("<key_id>")
    .option("--name <name>", "label for people")
    .addOption(new Option("--scope <scope...>", "what the key may do").conflicts("clearScopes"))
    .option("--clear-scopes", "take every scope away")
    .addOption(new Option("--metadata <name=value...>", "free-form texts").conflicts("clearMetadata"))
    .option("--clear-metadata", "take all metadata away")
    .action(async (keyId, options) => (await import("./update.ts")).update(keyId, options))
    .addHelpText(
      "after",
      examples(
        `keyhold keys update ${KEY_ID} --scope read`,
        `keyhold keys update ${KEY_ID} --name 'old bot' --clear-metadata`,
      ),
    );
}

function addRotate(keys: Command): Command {
  return withSecret(keys.command("rotate"))
    .description("give an issued key a new secret and show it, once")
    .argument("<key_id>")
    .option("--grace-period <duration>", "how long the old secret works too, such as 24h; without it, it stops at once")
    .action(async (keyId, options) => (await import("./rotate.ts")).rotate(keyId, options))
    .addHelpText("after", examples(`keyhold keys rotate ${KEY_ID} --grace-period 24h --out ci.secret`));
}

const REASONS = ["key-compromise", "affiliation-changed", "superseded", "privilege-withdrawn"];

function addRevoke(keys: Command): Command {
  return withCredential(keys.command("revoke"), "with --self: ")
    .description("revoke a key of either kind, for good, and every token derived from it")
    .argument("[key_id]")
    .addOption(new Option("--reason <reason>", "why").choices(REASONS))
    .option("--description <text>", "more about it, with --reason privilege-withdrawn")
    .option("--self", "revoke the key whose secret is given; this needs no admin token")
    .action(async (keyId, options) => (await import("./revoke.ts")).revoke(keyId, options))
    .addHelpText(
      "after",
      examples(
        `keyhold keys revoke ${KEY_ID} --reason key-compromise`,
        "keyhold keys revoke --self --reason superseded < ci.secret",
      ),
    );
}

function addDelete(keys: Command): Command {
  return keys
    .command("delete")
    .description("remove an imported key; its raw key may then be imported again")
    .argument("<key_id>")
    .action(async (keyId, options) => (await import("./delete.ts")).deleteKey(keyId, options))
    .addHelpText("after", examples(`keyhold keys delete ${KEY_ID}`));
}

function addVerify(keys: Command): Command {
  return withCredential(keys.command("verify"))
    .description("judge a credential: an issued secret, a raw key or a derived token; exit status 7 if it is not valid")
    .argument("[-]", "standard input, which is what is read anyway")
    .option("--no-cache", "by a fresh read of the database")
    .action(async (dash, options) => {
      requireDash(dash);
      await (await import("./verify.ts")).verify(options);
    })
    .addHelpText(
      "after",
      examples("keyhold keys verify < ci.secret", "keyhold keys verify --credential-file ci.secret --json --no-cache"),
    );
}

function addDerive(keys: Command): Command {
  return withSecret(withCredential(keys.command("derive")))
    .description("exchange a credential for a token that lives for a while, and show it")
    .argument("[-]", "standard input, which is what is read anyway")
    .addOption(new Option("--algorithm <form>", "form of the token").choices(["jwt", "macaroon"]).default("jwt"))
    .option("--ttl <duration>", "its lifetime; without it 1h")
    .option("--scope <scope...>", "a part of the scopes of the credential; without it all")
    .option("--claim <name=value...>", "claims to add; a value that is JSON is taken as that")
    .action(async (dash, options) => {
      requireDash(dash);
      await (await import("./derive.ts")).derive(options);
    })
    .addHelpText(
      "after",
      examples(
        "keyhold keys derive --ttl 15m --scope read < ci.secret",
        "keyhold keys derive --algorithm macaroon --out token < ci.secret",
      ),
    );
}

function addImport(keys: Command): Command {
  return withCredential(withDraft(keys.command("import")), "for one key: ")
    .description(
      "import keys that were made elsewhere: those of a file, or one (--name, --actor) whose raw key is read from standard input",
    )
    .argument("[file]", "JSON Lines or CSV; - is standard input")
    .option("--request-id <id>", "for one key: makes a repeat safe")
    .addOption(
      new Option("--format <format>", "without it, what the name of the file ends with").choices(["jsonl", "csv"]),
    )
    .option("--dry-run", "only look for bad rows; nothing is sent")
    .option("--skip-existing", "a raw key that is imported already is no failure")
    .option("--failures <file>", "where failures go; without it <file>.failures.jsonl")
    .option("--failures-with-keys", "write rows that failed as a whole, raw keys too, to be corrected and imported")
    .option("--progress <file>", "where the progress is kept while it runs; without it <file>.progress")
    .option("--concurrency <count>", "calls at once", positiveInteger, 4)
    .option("--retry-for <duration>", "how long to try again while the server is away", "10m")
    .action(async (file, options) => {
      if (file === undefined && options.name === undefined)
        throw invalidArgument("file", "is required, or --name for one key");
      if (file === undefined) return (await import("./import-one.ts")).importOne(requireDraft(options));
      refuseDraft(options);
      const { parseDuration } = await import("../../lib/duration.ts");
      const retryFor = parseDuration(options.retryFor, "--retry-for");
      return (await import("../import/import.ts")).importFile(file, { ...options, retryFor });
    })
    .addHelpText("after", IMPORT_HELP);
}

const KEY_ID = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

const IMPORT_HELP = `
The file has a row for each key: an object a line, or CSV with a header. Its fields are raw_key, name and actor_id, and optionally
scopes (in CSV between spaces), ttl and metadata (in CSV a column metadata.<name> each). Interrupted in any way, the same command
goes on where it was; no key is imported twice.
${examples(
  "keyhold keys import keys.csv",
  "keyhold keys import keys.jsonl --dry-run",
  "zcat keys.jsonl.gz | keyhold keys import - --format jsonl --failures bad.jsonl",
  "keyhold keys import --name 'old portal' --actor team_42 --credential-file portal.key",
)}`;

function examples(...lines: readonly string[]): string {
  return ["", "Examples:", ...lines.map((line) => `  ${line}`)].join("\n");
}

function withRemote(command: Command): Command {
  return withJson(command)
    .option("--url <url>", "the server; without it KEYHOLD_URL, or http://127.0.0.1:4420")
    .option("--token-file <file>", "file with the admin token; without it KEYHOLD_TOKEN_FILE, or KEYHOLD_TOKEN");
}

function withSecret(command: Command): Command {
  return command.option("--out <file>", "write the secret to this new file (mode 0600) instead of showing it");
}

function withCredential(command: Command, when = ""): Command {
  return command.option(
    "--credential-file <file>",
    `${when}file with the credential; without it, or with -, standard input`,
  );
}

function withDraft(command: Command): Command {
  return command
    .option("--name <name>", "label for people")
    .option("--actor <actor_id>", "owner of the key")
    .option("--scope <scope...>", "what the key may do")
    .option("--ttl <duration>", "lifetime such as 90d; without it the key does not expire")
    .option("--metadata <name=value...>", "free-form texts");
}

const DRAFT = ["name", "actor", "scope", "ttl", "metadata", "requestId", "credentialFile"];

function requireDraft<T extends { readonly name?: string; readonly actor?: string }>(options: T) {
  const { name, actor } = options;
  if (name === undefined) throw invalidArgument("--name", "is required");
  if (actor === undefined) throw invalidArgument("--actor", "is required");
  return { ...options, name, actor };
}

function refuseDraft(options: Readonly<Record<string, unknown>>): void {
  const given = DRAFT.find((name) => options[name] !== undefined);
  if (given !== undefined) throw invalidArgument(`--${given}`, "is for one key, without a file");
}

/** What stands there may be a credential, and is not repeated. */
function requireDash(text: string | undefined): void {
  if (text === undefined || text === "-") return;
  throw invalidArgument(
    "CREDENTIAL",
    "is never an argument, which others could read: give it on standard input or in a file",
  );
}

function positiveInteger(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number from 1.");
}

import { type Command, Option } from "commander";
import { invalidArgument } from "../../domain/errors.ts";
import { addImport } from "../import/command.ts";
import { scopeOption } from "../options.ts";
import {
  examples,
  positiveInteger,
  requireDraft,
  withCredential,
  withDraft,
  withRemote,
  withSecret,
} from "./options.ts";

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
    .addOption(scopeOption("what the key may do").conflicts("clearScopes"))
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
    .option("--description <text>", "more about the reason, at most 1000 characters; not with --self")
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
    .addOption(scopeOption("a part of the scopes of the credential; without it all"))
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

const KEY_ID = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

/** What stands there may be a credential, and is not repeated. */
function requireDash(text: string | undefined): void {
  if (text === undefined || text === "-") return;
  throw invalidArgument(
    "CREDENTIAL",
    "is never an argument, which others could read: give it on standard input or in a file",
  );
}

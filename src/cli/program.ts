import { Argument, type Command, Option } from "commander";
import { ADMIN_SCOPE, ADMIN_SCOPES } from "../domain/admin-scopes.ts";
import { readBuild, readVersion } from "../server/version.ts";
import { ALGORITHM_NAMES } from "../token/jwt/algorithms.ts";
import { addActorsCommands } from "./actors/commands.ts";
import { addAuditCommands } from "./audit/commands.ts";
import { EXIT_STATUS_HELP } from "./exit-status.ts";
import { addHmacKeysCommands } from "./hmac-keys/commands.ts";
import { addKeysCommands } from "./keys/commands.ts";
import { allowIpOption, scopeOption, withJson, withRemote } from "./options.ts";
import { jsonText, writeResult } from "./output.ts";
import { addUsageCommand } from "./usage/commands.ts";
import { KeyholdCommand } from "./usage.ts";
import { addWebhooksCommands } from "./webhooks/commands.ts";

/** Creates the command tree. Each command imports its code when it runs, so that help and usage errors are fast. */
export function createProgram(isJson = false): Command {
  const program = new KeyholdCommand("keyhold")
    .description(
      "An API-key service: issues, imports, verifies, rotates and revokes keys, and derives tokens from them.",
    )
    .version(readVersion(), "-V, --version", "show the version")
    .showHelpAfterError(isJson ? false : "Run the command with --help for usage.")
    .configureOutput({ outputError: (text, write) => write(isJson ? usageInJson(text) : text) })
    .addHelpText("after", EXIT_STATUS_HELP)
    .exitOverride();
  addServerCommands(program);
  addKeysCommands(program);
  addActorsCommands(program);
  addHmacKeysCommands(program);
  addAuditCommands(program);
  addUsageCommand(program);
  addWebhooksCommands(program);
  addSecretCommands(program);
  addOperatorCommands(program);
  return program;
}

function usageInJson(text: string): string {
  const message = text.trim().replace(/^error: /, "");
  return `${jsonText({ error: { code: 400, message, status: "INVALID_ARGUMENT", details: [] } })}\n`;
}

function addServerCommands(program: Command): void {
  program
    .command("serve")
    .description("run the server until SIGINT or SIGTERM")
    .option("--workers <count>", "number of worker processes, or auto for one per CPU core")
    .action(async (options) => (await import("./serve.ts")).serve(options));
  program
    .command("worker", { hidden: true })
    .description("worker process, started by serve")
    .action(async () => (await import("./workers/worker.ts")).runWorker());
  withJson(program.command("migrate"))
    .description("migrate the database schema as its owner, and grant the servers' role the privileges it needs")
    .option("--grant-to <role>", "the servers' role (default: the user of KEYHOLD_DATABASE_URL)")
    .action(async (options) => (await import("./migrate.ts")).migrate(options));
}

function addSecretCommands(program: Command): void {
  const token = program
    .command("admin")
    .description("administrative access")
    .command("token")
    .description("admin tokens: issued keys with scopes that administer Keyhold itself");
  withJson(token.command("create"))
    .description("create an admin token and print it; it is shown only once")
    .requiredOption("--name <name>", "display name")
    .addOption(scopeOption(`scopes of the token (default: ${ADMIN_SCOPE})`, ADMIN_SCOPES))
    .option("--actor <actor_id>", "owner of the token", "admin")
    .option("--restrict-to <actor_id...>", "restrict the token to the keys of these actors (default: any)")
    .option("--ttl <duration>", 'lifetime, such as 30d, or "none" for no expiry (default: 90d)')
    .addOption(allowIpOption("addresses from which the token is accepted, such as 203.0.113.0/24 (default: any)"))
    .option("--out <file>", "write the token to a new file (mode 0600) instead of stdout")
    .action(async (options) => (await import("./admin-token.ts")).createAdminToken(options));
  withJson(token.command("renew"))
    .description("change the expiry of an unexpired admin token; its secret stays the same")
    .argument("<key_id>", "key id of the token, as shown by `keyhold doctor` and in alerts")
    .option("--ttl <duration>", 'lifetime from now, such as 30d, or "none" for no expiry (default: 90d)')
    .action(async (keyId, options) => (await import("./admin-token.ts")).renewAdminToken(keyId, options));
  const signingKeys = program.command("signing-keys").description("keys that sign derived JWTs");
  withJson(signingKeys.command("list"))
    .description("list the signing keys, newest first")
    .action(async (options) => (await import("./signing-keys.ts")).listSigningKeys(options));
  withJson(signingKeys.command("rotate"))
    .description("sign with a new key; existing tokens remain valid until they expire")
    .option(
      "--force",
      "rotate even if the active key cannot be unwrapped (root secret lost); its tokens become invalid",
    )
    .addOption(
      new Option(
        "--algorithm <name>",
        "algorithm of the new key (default: KEYHOLD_SIGNING_ALGORITHM, or the active key's algorithm)",
      ).choices(ALGORITHM_NAMES),
    )
    .action(async (options) => (await import("./signing-keys.ts")).rotateSigningKeys(options));
  withJson(signingKeys.command("revoke"))
    .description("revoke a signing key; its tokens are then rejected; if it is the active key, a new key replaces it")
    .argument("<kid>", "kid from `signing-keys list`")
    .option("--force", "revoke the active key even if it cannot be unwrapped (root secret lost)")
    .action(async (kid, options) => (await import("./signing-keys.ts")).revokeSigningKeys(kid, options));
  const secrets = program.command("secrets").description("root secrets, from which servers derive their keys");
  withJson(secrets.command("list"))
    .description("list the root secrets and what still depends on each")
    .action(async (options) => (await import("./secrets.ts")).listSecrets(options));
  withJson(secrets.command("rotate"))
    .description("add a new root secret to the root secret file, and wrap the signing keys with it")
    .option("--stage", "stage the new root secret: accepted, but not used until you promote it")
    .action(async (options) => (await import("./secrets.ts")).rotateSecret(options));
  withJson(secrets.command("promote"))
    .description("make a staged root secret current; first restart every server with it")
    .argument("<id>", "id from `secrets list`")
    .action(async (id, options) => (await import("./secrets.ts")).promoteSecret(id, options));
}

function addOperatorCommands(program: Command): void {
  const cluster = program.command("cluster").description("servers that share the database");
  withJson(cluster.command("status"))
    .description("list the servers with version, lease age and change feed lag")
    .action(async (options) => (await import("./cluster.ts")).showCluster(options));
  withJson(cluster.command("accept-database"))
    .description(
      "let servers use a database that they reject because it has lost durable changes; lost revocations stay lost",
    )
    .action(async (options) => (await import("./cluster.ts")).acceptCurrentDatabase(options));
  withRemote(program.command("login"))
    .description("check and store the server URL and token file for commands that call a running server")
    .action(async (options) => (await import("./login.ts")).login(options));
  withJson(program.command("doctor"))
    .description("check configuration, database, secrets and clocks, and print remedies; read-only")
    .action(async (options) => (await import("./doctor.ts")).doctor(options));
  withJson(program.command("version"))
    .description("print the version; with --json also the build, a digest of the program")
    .action((options) => writeResult(options, { version: readVersion(), build: readBuild() }, readVersion()));
  program
    .command("completion")
    .description("print a shell completion script")
    .addArgument(new Argument("<shell>", "the shell").choices(["bash", "zsh", "fish"]))
    .addHelpText(
      "after",
      `
Examples:
  eval "$(keyhold completion bash)"                                      # in ~/.bashrc
  keyhold completion zsh > "\${fpath[1]}/_keyhold"
  keyhold completion fish > ~/.config/fish/completions/keyhold.fish`,
    )
    .action(async (shell) => (await import("./completion.ts")).printCompletion(program, shell));
}

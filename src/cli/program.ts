import { Argument, Command } from "commander";
import { readVersion } from "../server/version.ts";
import { EXIT_STATUS_HELP } from "./exit-status.ts";
import { addKeysCommands } from "./keys/commands.ts";
import { scopeOption, withJson } from "./options.ts";

/** The commands. Each loads what it needs when it runs, so that help and mistakes answer at once. */
export function createProgram(isJson = false): Command {
  const program = new Command("keyhold")
    .description(
      "An API-key service: issues, imports, verifies, rotates and revokes keys, and derives tokens from them.",
    )
    .version(readVersion(), "-V, --version", "show the version")
    .showHelpAfterError(isJson ? false : "Add --help to the command to see how it is used.")
    .configureOutput({ outputError: (text, write) => write(isJson ? usageInJson(text) : text) })
    .addHelpText("after", EXIT_STATUS_HELP)
    .exitOverride();
  for (const add of [
    addServe,
    addMigrate,
    addKeysCommands,
    addAdmin,
    addSigningKeys,
    addSecrets,
    addCluster,
    addDoctor,
    addVersion,
    addCompletion,
  ]) {
    add(program);
  }
  return program;
}

/** In the form of all errors; what commander says quotes an argument at times, but secrets are none. */
function usageInJson(text: string): string {
  const message = text.trim().replace(/^error: /, "");
  return `${JSON.stringify({ error: { code: 400, message, status: "INVALID_ARGUMENT", details: [] } })}\n`;
}

function addServe(program: Command): void {
  program
    .command("serve")
    .description("run the server until SIGINT or SIGTERM")
    .option("--workers <count>", "processes that serve the port, or auto for as many as there are cores")
    .action(async (options) => (await import("./serve.ts")).serve(options));
  program
    .command("worker", { hidden: true })
    .description("one of the processes of serve, which starts it")
    .action(async () => (await import("./workers/worker.ts")).runWorker());
}

function addMigrate(program: Command): void {
  withJson(program.command("migrate"))
    .description("bring the schema of the database up to date, as its owner, and grant the servers' role what it needs")
    .option("--grant-to <role>", "the servers' role; by default the user of KEYHOLD_DATABASE_URL")
    .action(async (options) => (await import("./migrate.ts")).migrate(options));
}

function addAdmin(program: Command): void {
  const token = program
    .command("admin")
    .description("who may administer")
    .command("token")
    .description("admin tokens: issued keys with scopes over Keyhold itself");
  withJson(token.command("create"))
    .description("make an admin token and print it, once")
    .requiredOption("--name <name>", "label for people")
    .addOption(
      scopeOption("keyhold:admin (the default), keyhold:keys.read, keyhold:keys.write, keyhold:verify, keyhold:derive"),
    )
    .option("--actor <actor_id>", "owner of the token", "admin")
    .option("--ttl <duration>", "lifetime such as 90d; without it the token does not expire")
    .option("--out <file>", "write the token to this new file (mode 0600) instead of showing it")
    .action(async (options) => (await import("./admin-token.ts")).createAdminToken(options));
}

function addSigningKeys(program: Command): void {
  const signingKeys = program.command("signing-keys").description("keys that sign derived JWTs");
  withJson(signingKeys.command("list"))
    .description("show the signing keys, newest first")
    .action(async (options) => (await import("./signing-keys.ts")).listSigningKeys(options));
  withJson(signingKeys.command("rotate"))
    .description("sign with a new key; tokens of the old one stay good until they expire")
    .option(
      "--force",
      "although the key in use does not unwrap, since its root secret is lost: its tokens are refused then",
    )
    .action(async (options) => (await import("./signing-keys.ts")).rotateSigningKeys(options));
}

function addSecrets(program: Command): void {
  const secrets = program.command("secrets").description("root secrets, which all server keys are derived from");
  withJson(secrets.command("list"))
    .description("show what each root secret is still needed for")
    .action(async (options) => (await import("./secrets/list.ts")).listSecrets(options));
  withJson(secrets.command("rotate"))
    .description("write a new root secret into the file of root secrets, and wrap the signing keys under it")
    .option(
      "--stage",
      "write it as one that is accepted and not yet used, for servers that run: promote it when they know it",
    )
    .action(async (options) => (await import("./secrets/rotate.ts")).rotateSecret(options));
  withJson(secrets.command("promote"))
    .description("use a staged root secret, once every server was restarted since it was staged")
    .argument("<id>", "as `secrets list` shows it")
    .action(async (id, options) => (await import("./secrets/promote.ts")).promoteSecret(id, options));
}

function addCluster(program: Command): void {
  const cluster = program.command("cluster").description("the servers that share the database");
  withJson(cluster.command("status"))
    .description("show each with its version, the age of its lease, and how long news takes to reach it")
    .action(async (options) => (await import("./cluster.ts")).showCluster(options));
  withJson(cluster.command("accept-database"))
    .description("let servers that refuse the database, because it has lost changes, use it as it is")
    .action(async (options) => (await import("./cluster.ts")).acceptCurrentDatabase(options));
}

function addDoctor(program: Command): void {
  withJson(program.command("doctor"))
    .description("examine configuration, database, secrets and clocks, and say what to do; changes nothing")
    .action(async (options) => (await import("./doctor.ts")).doctor(options));
}

function addVersion(program: Command): void {
  withJson(program.command("version"))
    .description("show the version")
    .action(async (options) => (await import("./version.ts")).printVersion(options));
}

function addCompletion(program: Command): void {
  program
    .command("completion")
    .description("print a script that completes commands and options in a shell")
    .addArgument(new Argument("<shell>", "the shell").choices(["bash", "zsh", "fish"]))
    .addHelpText(
      "after",
      `
Examples:
  eval "$(keyhold completion bash)"                                      # in ~/.bashrc
  keyhold completion zsh > "\${fpath[1]}/_keyhold"
  keyhold completion fish > ~/.config/fish/completions/keyhold.fish`,
    )
    .action(async (shell) => (await import("./completion/completion.ts")).printCompletion(program, shell));
}

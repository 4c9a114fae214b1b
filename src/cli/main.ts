#!/usr/bin/env node
import { Command, CommanderError } from "commander";
import { exitStatus, explain } from "./failure.ts";
import { obeySignalsAsInit } from "./signals.ts";

obeySignalsAsInit();

/** Each command loads what it needs when it runs, so that help and mistakes answer at once. */
const program = new Command("keyhold")
  .description("An API-key service: issues, imports, verifies, rotates and revokes keys, and derives tokens from them.")
  .showHelpAfterError()
  .exitOverride();

program
  .command("serve")
  .description("run the server until SIGINT or SIGTERM")
  .option("--workers <count>", "processes that serve the port, or auto for as many as there are cores")
  .action(async (options) => (await import("./serve.ts")).serve(options));

program
  .command("worker", { hidden: true })
  .description("one of the processes of serve, which starts it")
  .action(async () => (await import("./workers/worker.ts")).runWorker());

program
  .command("migrate")
  .description("bring the schema of the database up to date, as its owner, and grant the servers' role what it needs")
  .option("--grant-to <role>", "the servers' role; by default the user of KEYHOLD_DATABASE_URL")
  .action(async (options) => (await import("./migrate.ts")).migrate(options));

program
  .command("admin")
  .description("who may administer")
  .command("token")
  .description("admin tokens: issued keys with scopes over Keyhold itself")
  .command("create")
  .description("make an admin token and print it, once")
  .requiredOption("--name <name>", "label for people")
  .option(
    "--scope <scope...>",
    "keyhold:admin (the default), keyhold:keys.read, keyhold:keys.write, keyhold:verify, keyhold:derive",
  )
  .option("--actor <actor_id>", "owner of the token", "admin")
  .option("--ttl <duration>", "lifetime such as 90d; without it the token does not expire")
  .action(async (options) => (await import("./admin-token.ts")).createAdminToken(options));

const signingKeys = program.command("signing-keys").description("keys that sign derived JWTs");
signingKeys
  .command("list")
  .description("show the signing keys, newest first")
  .action(async () => (await import("./signing-keys.ts")).listSigningKeys());
signingKeys
  .command("rotate")
  .description("sign with a new key; tokens of the old one stay good until they expire")
  .option(
    "--force",
    "although the key in use does not unwrap, since its root secret is lost: its tokens are refused then",
  )
  .action(async (options) => (await import("./signing-keys.ts")).rotateSigningKeys(options));

const secrets = program.command("secrets").description("root secrets, which all server keys are derived from");
secrets
  .command("list")
  .description("show what each root secret is still needed for")
  .option("--json", "for programs")
  .action(async (options) => (await import("./secrets/list.ts")).listSecrets(options));
secrets
  .command("rotate")
  .description("write a new root secret into the file of root secrets, and wrap the signing keys under it")
  .option(
    "--stage",
    "write it as one that is accepted and not yet used, for servers that run: promote it when they know it",
  )
  .action(async (options) => (await import("./secrets/rotate.ts")).rotateSecret(options));
secrets
  .command("promote")
  .description("use a staged root secret, once every server was restarted since it was staged")
  .argument("<id>", "as `secrets list` shows it")
  .action(async (id) => (await import("./secrets/promote.ts")).promoteSecret(id));

program
  .command("cluster")
  .description("the servers that share the database")
  .command("status")
  .description("show each with its version, the age of its lease, and how long news takes to reach it")
  .action(async () => (await import("./cluster.ts")).showCluster());

program
  .command("doctor")
  .description("examine configuration, database, secrets and clocks, and say what to do; changes nothing")
  .option("--json", "for programs")
  .action(async (options) => (await import("./doctor.ts")).doctor(options));

program
  .command("version")
  .description("show the version")
  .action(async () => (await import("./version.ts")).printVersion());

try {
  await program.parseAsync();
} catch (error) {
  // Commander has said itself what is wrong with the usage.
  if (!(error instanceof CommanderError)) console.error(`keyhold: ${explain(error)}`);
  process.exitCode = exitStatus(error);
}

import { type Command, InvalidArgumentError, Option } from "commander";
import { EVENT_TYPES } from "../../webhooks/event-types.ts";
import { examples, positiveInteger, withOutput, withRemote, withSecret } from "../options.ts";

/** Adds `keyhold webhooks`. Each verb imports its code when it runs. */
export function addWebhooksCommands(program: Command): void {
  const webhooks = program
    .command("webhooks")
    .description("webhook endpoints: URLs to which a running server sends events of the audit log");
  withSecret(withOutput(withFields(webhooks.command("create"))))
    .description("create an endpoint and print its secret, which is shown only once")
    .argument("<endpoint_id>", "id of the endpoint: up to 64 letters, digits, dots, hyphens and underscores")
    .requiredOption("--endpoint-url <url>", "URL that receives the events")
    .action(async (id, options) => (await import("./endpoints.ts")).create(id, options));
  withOutput(webhooks.command("list"))
    .description("list the endpoints")
    .action(async (options) => (await import("./endpoints.ts")).list(options));
  withOutput(webhooks.command("get"))
    .description("show an endpoint")
    .argument("<endpoint_id>")
    .action(async (id, options) => (await import("./endpoints.ts")).get(id, options));
  withOutput(withFields(webhooks.command("update")))
    .description("change an endpoint")
    .argument("<endpoint_id>")
    .option("--endpoint-url <url>", "URL that receives the events")
    .addOption(new Option("--disable", "send nothing to the endpoint").conflicts("enable"))
    .option("--enable", "send to the endpoint again, also the events that were recorded meanwhile")
    .action(async (id, options) => (await import("./endpoints.ts")).update(id, options));
  webhooks
    .command("delete")
    .description("delete an endpoint with its deliveries")
    .argument("<endpoint_id>")
    .action(async (id, options) => (await import("./endpoints.ts")).remove(id, options));
  withSecret(withOutput(webhooks.command("rotate-secret")))
    .description("replace the secret of an endpoint and print the new secret; it is shown only once")
    .argument("<endpoint_id>")
    .option("--grace-period <duration>", "how long the old secret signs too, such as 24h (default: 0)")
    .action(async (id, options) => (await import("./endpoints.ts")).rotateSecret(id, options));
  withOutput(webhooks.command("test"))
    .description("send a test event to an endpoint")
    .argument("<endpoint_id>")
    .action(async (id, options) => (await import("./deliveries.ts")).sendTest(id, options));
  withOutput(webhooks.command("deliveries"))
    .description("list the deliveries of an endpoint with their last attempts, newest first; --json prints one array")
    .argument("<endpoint_id>")
    .option("--limit <count>", "maximum number of deliveries (default: all)", positiveInteger)
    .option("--page-size <count>", "deliveries per call to the server, up to 1000", positiveInteger, 200)
    .action(async (id, options) => (await import("./deliveries.ts")).list(id, options));
  withOutput(webhooks.command("redeliver"))
    .description("deliver an event again, at once")
    .argument("<endpoint_id>")
    .argument("<delivery_id>")
    .action(async (id, delivery, options) => (await import("./deliveries.ts")).redeliver(id, delivery, options));
  withOutput(webhooks.command("replay"))
    .description("deliver all events from a position in the audit log on again")
    .argument("<endpoint_id>")
    .requiredOption("--from-seq <seq>", "position of the first event, as shown by `audit list`", position)
    .action(async (id, options) => (await import("./deliveries.ts")).replay(id, options));
  for (const command of webhooks.commands)
    withRemote(command).addHelpText("after", examples(EXAMPLES[command.name()] ?? []));
}

function withFields(command: Command): Command {
  return command
    .addOption(new Option("--event <type...>", "types of events to send (default: all)").choices(EVENT_TYPES))
    .option("--filter <expression>", 'AIP-160 filter expression, such as actor_id="team_42"')
    .option("--description <text>", "any text, at most 1000 characters");
}

function position(text: string): bigint {
  if (/^\d{1,18}$/.test(text)) return BigInt(text);
  throw new InvalidArgumentError("Must be a whole number.");
}

const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  create: [
    "keyhold webhooks create billing --endpoint-url https://billing.example.com/keyhold --event key.revoked --out webhook.secret",
    `keyhold webhooks create team-42 --endpoint-url https://team.example.com/keyhold --filter 'actor_id="team_42"'`,
  ],
  list: ["keyhold webhooks list"],
  get: ["keyhold webhooks get billing --json"],
  update: [
    "keyhold webhooks update billing --event key.revoked --event key.rotated",
    "keyhold webhooks update billing --enable",
  ],
  delete: ["keyhold webhooks delete billing"],
  "rotate-secret": ["keyhold webhooks rotate-secret billing --grace-period 24h --out webhook.secret"],
  test: ["keyhold webhooks test billing"],
  deliveries: ["keyhold webhooks deliveries billing --limit 20"],
  redeliver: ["keyhold webhooks redeliver billing 0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10"],
  replay: ["keyhold webhooks replay billing --from-seq 4711"],
};

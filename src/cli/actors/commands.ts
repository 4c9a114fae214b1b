import type { Command } from "commander";
import { quotaOption, rateLimitOption } from "../limit-options.ts";
import { examples, positiveInteger, withAdjustment, withOutput, withRemote } from "../options.ts";

/** Adds `keyhold actors`. Each verb imports its code when it runs. */
export function addActorsCommands(program: Command): void {
  const actors = program.command("actors").description("limits that all keys of an actor share, on a running server");
  withOutput(actors.command("list"))
    .description("list the actors for which limits were set; --json prints one array")
    .option("--filter <expression>", "AIP-160 filter expression")
    .option("--limit <count>", "maximum number of actors (default: all)", positiveInteger)
    .option("--page-size <count>", "actors per call to the server, up to 1000", positiveInteger, 200)
    .action(async (options) => (await import("./actors.ts")).list(options));
  withOutput(actors.command("get"))
    .description("show the limits of an actor")
    .argument("<actor_id>")
    .action(async (id, options) => (await import("./actors.ts")).get(id, options));
  withOutput(actors.command("update"))
    .description("set the limits of an actor, which need not have keys yet; they replace the earlier ones")
    .argument("<actor_id>")
    .addOption(rateLimitOption("rate limits of the actor").conflicts("clearRateLimits"))
    .option("--clear-rate-limits", "remove all rate limits")
    .addOption(quotaOption("quotas of the actor").conflicts("clearQuotas"))
    .option("--clear-quotas", "remove all quotas")
    .action(async (id, options) => (await import("./actors.ts")).update(id, options));
  withAdjustment(withOutput(actors.command("adjust-quota")).argument("<actor_id>")).action(async (id, name, options) =>
    (await import("./actors.ts")).adjustQuota(id, name, options),
  );
  actors
    .command("delete")
    .description("delete an actor with its limits; its keys remain")
    .argument("<actor_id>")
    .action(async (id, options) => (await import("./actors.ts")).remove(id, options));
  for (const command of actors.commands)
    withRemote(command).addHelpText("after", examples(EXAMPLES[command.name()] ?? []));
}

const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  list: ["keyhold actors list", `keyhold actors list --filter 'actor_id="team_*" AND NOT quotas:*'`],
  get: ["keyhold actors get team_42 --json"],
  update: [
    "keyhold actors update team_42 --rate-limit requests=600/1m,burst=1200",
    "keyhold actors update team_42 --quota monthly=10000/month --clear-rate-limits",
  ],
  "adjust-quota": ["keyhold actors adjust-quota team_42 monthly --subtract 500"],
  delete: ["keyhold actors delete team_42"],
};

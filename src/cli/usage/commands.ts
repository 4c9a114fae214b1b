import { type Command, Option } from "commander";
import { DIMENSIONS } from "../../usage/query.ts";
import { examples, positiveInteger, withRemote } from "../options.ts";

/** Adds `keyhold usage`. It imports its code when it runs. */
export function addUsageCommand(program: Command): void {
  withRemote(program.command("usage"))
    .description("how often keys were verified on a running server, by hour or day; --json prints one array")
    .argument("[key_id]", "count the verifications of this key (default: of all keys)")
    .option("--actor <actor_id>", "count those of the keys of this actor")
    .option("--outcome <outcome>", "count those with this outcome, such as VALID or EXPIRED")
    .option("--units <limit>", "add up the units of the limits with this name, instead of counting verifications")
    .option("--since <time>", "from this time on: RFC 3339, or a duration before now such as 7d (default: 24h)")
    .option("--until <time>", "before this time, in the same forms (default: now)")
    .addOption(
      new Option(
        "--by <dimension...>",
        "one row for each (default: outcome for a key, or limit with --units; otherwise key)",
      ).choices(DIMENSIONS),
    )
    .addOption(new Option("--step <step>", "one row for each hour or day in UTC").choices(["1h", "1d"]))
    .option("--limit <count>", "maximum number of rows", positiveInteger, 1_000)
    .addOption(new Option("--csv", "print all rows as CSV").conflicts(["json", "limit"]))
    .action(async (keyId, options) => (await import("./usage.ts")).usage(keyId, options))
    .addHelpText("after", examples(EXAMPLES));
}

const EXAMPLES = [
  "keyhold usage 0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10 --since 7d --step 1d",
  "keyhold usage --actor team_42 --since 30d --by outcome",
  "keyhold usage --actor team_42 --units tokens --since 30d --step 1d",
  "keyhold usage --since 30d --step 1d --csv >usage.csv",
];

import { type Command, Option } from "commander";
import { wholeNumber } from "../options.ts";

/** Adds `keyhold keys bulk-revoke` and `bulk-disable`. */
export function addBulk(keys: Command, reasons: readonly string[]): void {
  withBulk(keys.command("bulk-revoke"))
    .description("revoke every key that matches a filter permanently, with every token derived from it")
    .addOption(new Option("--reason <reason>", "revocation reason").choices(reasons))
    .option("--description <text>", "details of the reason, at most 1000 characters")
    .action(async (options) => (await import("./bulk.ts")).bulkRevoke(await withDurations(options)));
  withBulk(keys.command("bulk-disable"))
    .description("disable every active key that matches a filter, with every token derived from it")
    .option("--reason <text>", "why, at most 1000 characters")
    .action(async (options) => (await import("./bulk.ts")).bulkDisable(await withDurations(options)));
}

function withBulk(command: Command): Command {
  return command
    .requiredOption("--filter <expression>", "AIP-160 filter expression")
    .option("--validate-only", "print the number of keys that match, and change none")
    .option("--expected-count <count>", "change nothing if another number of keys matches", wholeNumber)
    .option("--request-id <id>", "continue the operation that an interrupted command has printed")
    .option("--yes", "do not ask for confirmation; required if stdin is not a terminal")
    .option("--retry-for <duration>", "how long to retry while the server is unreachable", "10m");
}

async function withDurations<T extends { readonly retryFor: string }>(options: T) {
  const { parseDuration } = await import("../../domain/duration.ts");
  return { ...options, retryFor: parseDuration(options.retryFor, "--retry-for") };
}

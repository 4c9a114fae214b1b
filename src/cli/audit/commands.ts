import { type Command, InvalidArgumentError, Option } from "commander";
import { examples, positiveInteger, withRemote } from "../options.ts";

/** Adds `keyhold audit`. Each verb imports its code when it runs. */
export function addAuditCommands(program: Command): void {
  const audit = program
    .command("audit")
    .description(
      "the audit log of a running server: who changed which key, signing key or setting, when and from where",
    );
  withConditions(audit.command("list"))
    .description("list events, newest first; --json prints one array")
    .addOption(sinceOption())
    .option("--until <time>", "events before this time, in the same forms")
    .option(
      "--order-by <field>",
      'time or seq, the position in the log; append " desc" for descending order (default: "time desc")',
    )
    .option("--limit <count>", "maximum number of events (default: all)", positiveInteger)
    .option("--page-size <count>", "events per call to the server, up to 1000", positiveInteger, 200)
    .action(async (options) => (await import("./events.ts")).list(options));
  audit
    .command("get")
    .description("show an event with its caller and each changed field")
    .argument("<seq>", "position of the event in the log, as shown by `audit list`", position)
    .action(async (seq, options) => (await import("./events.ts")).get(seq, options));
  audit
    .command("export")
    .description("write all events in the order of the log, one per line, and the position to resume after to stderr")
    .option("--after-seq <seq>", "only events after this position in the log", position)
    .addOption(sinceOption().conflicts("afterSeq"))
    .addOption(
      new Option("--format <name>", "jsonl: JSON as in the REST API; ocsf: OCSF API Activity (class 6003)")
        .choices(["jsonl", "ocsf"])
        .default("jsonl"),
    )
    .action(async (options) => (await import("./export.ts")).exportEvents(options));
  withConditions(audit.command("watch"))
    .description("print events as they are recorded, until interrupted; --json prints one per line")
    .option("--from-seq <seq>", "begin with the event at this position in the log (default: the next event)", position)
    .addOption(
      new Option(
        "--resume-token <token>",
        "continue where an earlier watch ended, which has printed the token",
      ).conflicts("fromSeq"),
    )
    .option("--retry-for <duration>", "how long to retry while the server is unreachable", "10m")
    .action(async (options) => (await import("./watch.ts")).watch(options));
  audit
    .command("checkpoint")
    .description(
      "print the signed head of the log's Merkle tree: keep it where administrators of the database cannot write",
    )
    .option("--verifier-key", "print the key that verifies the signature instead")
    .action(async (options) => (await import("./verify.ts")).checkpoint(options));
  audit
    .command("verify")
    .description("read the whole log, and check that no event was changed, removed, inserted or moved")
    .option("--checkpoint <files...>", "checkpoints that were kept elsewhere: the log must begin with their events")
    .option("--verifier-key <key>", "the key that must have signed (default: the one that the server states)")
    .action(async (options) => (await import("./verify.ts")).verify(options));
  for (const command of audit.commands)
    withRemote(command).addHelpText("after", examples(EXAMPLES[command.name()] ?? []));
}

/** Adds the options that select events by what they are about. */
function withConditions(command: Command): Command {
  return command
    .option("--key <key_id>", "events of this key")
    .option("--actor <actor_id>", "events of the keys of this actor")
    .option("--caller <name>", "events of this caller, such as admin-token:KEY_ID")
    .option("--action <action>", "events with this action, such as key.revoked, or key.* for any of a key")
    .option("--filter <expression>", "AIP-160 filter expression; other filter options narrow it further");
}

function sinceOption(): Option {
  return new Option("--since <time>", "events from this time on: RFC 3339, or a duration before now such as 7d");
}

/** Parses a position in the log. */
function position(text: string): bigint {
  if (/^\d{1,18}$/.test(text)) return BigInt(text);
  throw new InvalidArgumentError("Must be a whole number.");
}

const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  list: [
    "keyhold audit list --limit 20",
    "keyhold audit list --key 0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10",
    "keyhold audit list --actor team_42 --action key.revoked --since 30d",
    `keyhold audit list --filter 'client_ip="203.0.113.7"' --since 2030-01-31T00:00:00Z --json`,
  ],
  get: ["keyhold audit get 4711"],
  export: [
    "keyhold audit export > audit.jsonl",
    "keyhold audit export --after-seq 4711 --format ocsf >> audit.ocsf.jsonl",
  ],
  checkpoint: ["keyhold audit checkpoint > audit-checkpoint.txt", "keyhold audit checkpoint --verifier-key"],
  verify: ["keyhold audit verify", "keyhold audit verify --checkpoint audit-checkpoint.txt"],
  watch: ["keyhold audit watch --action 'key.*'", "keyhold audit watch --from-seq 4712 --json | jq .action"],
};

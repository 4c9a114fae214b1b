import { type Command, Option } from "commander";
import { invalidArgument } from "../../domain/errors.ts";
import { examples, positiveInteger, requireDraft, withCredential, withDraft } from "../keys/options.ts";

export function addImport(keys: Command): Command {
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
    .option("--skip-existing", "a raw key that exists already is counted and left as it is (default)", true)
    .option("--no-skip-existing", "a raw key that exists already is a failure, listed with the others")
    .option("--failures <file>", "where failures go; without it <file>.failures.jsonl")
    .option("--failures-with-keys", "write rows that failed as a whole, raw keys too, to be corrected and imported")
    .option("--progress <file>", "where the progress is kept while it runs; without it <file>.progress")
    .option("--concurrency <count>", "calls at once", positiveInteger, 4)
    .option("--retry-for <duration>", "how long to try again while the server is away", "10m")
    .action(async (file, options) => {
      if (file === undefined && options.name === undefined)
        throw invalidArgument("file", "is required, or --name for one key");
      if (file === undefined) return (await import("../keys/import-one.ts")).importOne(requireDraft(options));
      refuseDraft(options);
      const { parseDuration } = await import("../../domain/duration.ts");
      const retryFor = parseDuration(options.retryFor, "--retry-for");
      return (await import("./import.ts")).importFile(file, { ...options, retryFor });
    })
    .addHelpText("after", IMPORT_HELP);
}

const IMPORT_HELP = `
The file has a row for each key: an object a line, or CSV with a header. Its fields are raw_key, name and actor_id, and optionally
scopes (in CSV separated by spaces), ttl and metadata (in CSV a column metadata.<name> each). Interrupted in any way, the same command
goes on where it was; no key is imported twice. One that is finished can be repeated: its keys exist, and are left as they are.
${examples(
  "keyhold keys import keys.csv",
  "keyhold keys import keys.jsonl --dry-run",
  "zcat keys.jsonl.gz | keyhold keys import - --format jsonl --failures bad.jsonl",
  "keyhold keys import --name 'old portal' --actor team_42 --credential-file portal.key",
)}`;

const DRAFT = ["name", "actor", "scope", "ttl", "metadata", "requestId", "credentialFile"];

function refuseDraft(options: Readonly<Record<string, unknown>>): void {
  const given = DRAFT.find((name) => options[name] !== undefined);
  if (given !== undefined) throw invalidArgument(`--${given}`, "is for one key, without a file");
}

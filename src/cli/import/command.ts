import { type Command, Option } from "commander";
import { invalidArgument } from "../../domain/errors.ts";
import { positiveInteger, requireKeyFields, withCredential, withKeyFields } from "../options.ts";

/** Adds `keyhold keys import`. */
export function addImport(keys: Command): void {
  withCredential(withKeyFields(keys.command("import")), "for one key: ")
    .description("import keys created elsewhere: from a file, or one key (--name, --actor) with its raw key from stdin")
    .argument("[file]", "JSON Lines or CSV; - for stdin")
    .option("--request-id <id>", "for one key: idempotency key")
    .addOption(new Option("--format <format>", "file format (default: by file extension)").choices(["jsonl", "csv"]))
    .option("--dry-run", "validate the rows without sending them")
    .option("--skip-existing", "count raw keys that already exist and leave them unchanged (default)", true)
    .option("--no-skip-existing", "treat raw keys that already exist as failures")
    .option("--failures <file>", "file for failed rows (default: <file>.failures.jsonl)")
    .option("--failures-with-keys", "write failed rows including raw keys, to be corrected and imported")
    .option("--progress <file>", "progress file, kept while the import runs (default: <file>.progress)")
    .option("--concurrency <count>", "maximum calls in flight", positiveInteger, 4)
    .option("--retry-for <duration>", "how long to retry while the server is unreachable", "10m")
    .action(async (file, options) => {
      if (file === undefined && options.name === undefined)
        throw invalidArgument("file", "is required; or give --name to import one key");
      if (file === undefined) return (await import("../keys/create.ts")).importOne(requireKeyFields(options));
      rejectKeyFields(options);
      const { parseDuration } = await import("../../domain/duration.ts");
      const retryFor = parseDuration(options.retryFor, "--retry-for");
      return (await import("./import.ts")).importFile(file, { ...options, retryFor });
    })
    .addHelpText("after", IMPORT_HELP);
}

const IMPORT_HELP = `
The file has one row per key: JSON objects, one per line, or CSV with a header. Its fields are raw_key, name and actor_id, and optionally
scopes (in CSV separated by spaces), ttl or expire_time (RFC 3339), ip_restriction (in CSV the CIDR blocks, separated by spaces)
and metadata (in CSV one column metadata.<name> per entry). An interrupted import resumes when the command is repeated; no key is
imported twice. A finished import can be repeated: existing keys are left unchanged.`;

const KEY_FIELDS = ["name", "actor", "scope", "ttl", "allowIp", "metadata", "requestId", "credentialFile"];

function rejectKeyFields(options: Readonly<Record<string, unknown>>): void {
  const given = KEY_FIELDS.find((name) => options[name] !== undefined);
  if (given !== undefined) throw invalidArgument(`--${given}`, "is for one key and cannot be combined with a file");
}

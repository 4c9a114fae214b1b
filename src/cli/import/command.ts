import { type Command, Option } from "commander";
import { invalidArgument } from "../../domain/errors.ts";
import { withHash } from "../hash-options.ts";
import { pairsOption, positiveInteger, requireKeyFields, withCredential, withKeyFields } from "../options.ts";

export function addImport(keys: Command): void {
  withHash(withCredential(withKeyFields(keys.command("import")), "for one key: "))
    .description(
      "import existing keys as raw keys or hashes, from a file, or a single key (--name, --actor) from stdin",
    )
    .argument("[file]", "JSON Lines or CSV; - for stdin")
    .addOption(pairsOption("--map", "map fields to columns of the file, if the column names differ", "field=column"))
    .option("--request-id <id>", "for one key: request id")
    .option("--phc", "for one key: stdin is a hash with its salt and parameters, such as $2b$12$…")
    .option("--lookup-prefix <text>", "for one key with --phc: the first 6 to 64 bytes of its raw key")
    .addOption(new Option("--format <format>", "file format (default: by file extension)").choices(["jsonl", "csv"]))
    .option("--allow-weak", "allow raw keys shorter than 8 characters, which can be guessed")
    .option("--dry-run", "validate the rows without sending them")
    .option("--skip-existing", "count raw keys that already exist and leave them unchanged (default)", true)
    .option("--no-skip-existing", "treat raw keys that already exist as failures")
    .option("--failures <file>", "file for failed rows (default: <file>.failures.jsonl)")
    .option(
      "--failures-with-keys",
      "include raw keys in plaintext in the file of failed rows, so that the rows can be corrected and imported",
    )
    .option("--progress <file>", "progress file, kept while the import runs (default: <file>.progress)")
    .option("--concurrency <count>", "maximum calls in flight", positiveInteger, 4)
    .option("--retry-for <duration>", "how long to retry while the server is unreachable", "10m")
    .action(async (file, options) => {
      if (file === undefined && options.name === undefined)
        throw invalidArgument("file", "is required, unless --name is set to import one key");
      if (file === undefined) return (await import("../keys/create.ts")).importOne(requireKeyFields(options));
      rejectKeyOptions(options);
      const { parseDuration } = await import("../../domain/duration.ts");
      const retryFor = parseDuration(options.retryFor, "--retry-for");
      return (await import("./import.ts")).importFile(file, { ...options, retryFor });
    })
    .addHelpText("after", IMPORT_HELP);
}

const IMPORT_HELP = `
The file has one row per key: JSON objects, one per line, or CSV with a header. The required fields are raw_key, name and actor_id. The
optional fields are scopes (in CSV, separated by spaces), ttl or expire_time (RFC 3339), ip_restriction (in CSV, CIDR blocks separated by
spaces) and metadata (in CSV, one column metadata.<name> per entry). To resume an interrupted import, run the command again; no key is
imported twice. A finished import can be repeated: existing keys are left unchanged.

If you have only hashes, use hash or phc instead of raw_key. Put a hash without a salt in hash, and describe it with --hash-algorithm and
--hash-encoding. Put a hash with a salt, such as $2b$12$… or $argon2id$…, in phc, and the first 6 to 64 bytes of the raw key in
lookup_prefix. A key imported as a hash is adopted when it is first verified, and then works like any other key; \`keyhold keys list
--not-adopted\` lists keys that have not been adopted.

With --map, only the columns listed in --map are imported. They must include raw_key, hash or phc, as well as name and actor_id.`;

/** The options of one key, by their names in the result of the parser. */
const KEY_OPTIONS = {
  name: "--name",
  actor: "--actor",
  scope: "--scope",
  ttl: "--ttl",
  expireTime: "--expire-time",
  allowIp: "--allow-ip",
  metadata: "--metadata",
  requestId: "--request-id",
  credentialFile: "--credential-file",
  phc: "--phc",
  lookupPrefix: "--lookup-prefix",
};

function rejectKeyOptions(options: Readonly<Record<string, unknown>>): void {
  const conflicting = Object.entries(KEY_OPTIONS).find(([name]) => options[name] !== undefined);
  if (conflicting !== undefined)
    throw invalidArgument(conflicting[1], "is for one key and cannot be combined with a file");
}

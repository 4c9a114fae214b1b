import { type Command, Option } from "commander";
import { HASH_ENCODING_NAMES } from "../import/fields.ts";
import { examples, withCredential, withOutput, withRemote } from "../options.ts";

/** Adds `keyhold hmac-keys`. Each verb imports its code when it runs. */
export function addHmacKeysCommands(program: Command): void {
  const hmacKeys = program
    .command("hmac-keys")
    .description("HMAC keys, for imports of keys that are stored only as an HMAC");
  withCredential(hmacKeys.command("create"))
    .description("store an HMAC key, read from stdin; it is encrypted and never shown")
    .argument("<hmac_key_id>", "id of the HMAC key: up to 64 letters, digits, dots, hyphens and underscores")
    .addOption(
      new Option("--encoding <name>", "encoding of the key; utf8 uses the bytes of the text itself")
        .choices([...HASH_ENCODING_NAMES, "utf8"])
        .makeOptionMandatory(),
    )
    .action(async (id, options) => (await import("./hmac-keys.ts")).createHmacKey(id, options));
  withOutput(hmacKeys.command("list"))
    .description("list the HMAC keys, with the number of imported keys that still need each HMAC key")
    .action(async (options) => (await import("./hmac-keys.ts")).listHmacKeys(options));
  hmacKeys
    .command("delete")
    .description("delete an HMAC key that no imported key needs")
    .argument("<hmac_key_id>")
    .action(async (id, options) => (await import("./hmac-keys.ts")).deleteHmacKey(id, options));
  for (const command of hmacKeys.commands)
    withRemote(command).addHelpText("after", examples(EXAMPLES[command.name()] ?? []));
}

const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  create: [
    "keyhold hmac-keys create old-portal --encoding base64 < hmac.key",
    "keyhold hmac-keys create old-portal --encoding utf8 --credential-file hmac.key",
  ],
  list: ["keyhold hmac-keys list"],
  delete: ["keyhold hmac-keys delete old-portal"],
};

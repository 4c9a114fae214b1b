import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import { readSecretFile } from "./credential-input.ts";
import { HASH_ALGORITHM_NAMES, HASH_ENCODING_NAMES, type HashDefaults } from "./import/fields.ts";
import { timeOption } from "./options.ts";

export interface HashOptions {
  readonly hashAlgorithm?: string;
  readonly hashEncoding?: string;
  readonly hashPrefixFile?: string;
  readonly hashSuffixFile?: string;
  readonly hmacKeyId?: string;
  readonly adoptBeforeTime?: Timestamp;
}

/** Adds the options of hashes. Text around the raw key may be a secret, such as a pepper, so it is never an argument. */
export function withHash(command: Command): Command {
  const file = "file containing the text that was added";
  return command
    .addOption(
      new Option("--hash-algorithm <name>", "hash algorithm, for hashes without a salt").choices(HASH_ALGORITHM_NAMES),
    )
    .addOption(new Option("--hash-encoding <name>", "encoding of the hashes").choices(HASH_ENCODING_NAMES))
    .option("--hmac-key-id <id>", "id of an HMAC key, from `hmac-keys list`")
    .option("--hash-prefix-file <file>", `${file} before the raw key when it was hashed, such as a pepper`)
    .option("--hash-suffix-file <file>", `${file} after the raw key`)
    .addOption(
      timeOption("--adopt-before-time", "time at which an unadopted key expires, unless it is verified before then"),
    );
}

export async function readHashDefaults(options: HashOptions): Promise<HashDefaults> {
  const { hashAlgorithm, hashEncoding, hashPrefixFile, hashSuffixFile, hmacKeyId } = options;
  const textOf = async (option: string, file: string | undefined) => file && (await readSecretFile(option, file));
  return {
    algorithm: hashAlgorithm,
    encoding: hashEncoding,
    prefix: await textOf("--hash-prefix-file", hashPrefixFile),
    suffix: await textOf("--hash-suffix-file", hashSuffixFile),
    hmac_key_id: hmacKeyId,
  };
}

import type { JsonObject } from "../lib/json.ts";
import { createSecretFile } from "./credential-input.ts";
import { type OutputOptions, write, writeFields, writeJson } from "./output.ts";

export interface SecretOptions extends OutputOptions {
  /** A new file that the secret goes to instead of standard output. */
  readonly out?: string;
}

/** What was made: its secret, and the answer of the server that it stands in. */
export interface Made {
  readonly secret: string;
  readonly answer: JsonObject;
  /** The answer without the secret, or what of it people want to see. */
  readonly record: JsonObject;
}

/**
 * Makes a secret and shows it once: alone on standard output, so that a script can keep it, with the record on standard error;
 * as the answer of the server with `--json`; or in a file, and then nowhere else.
 */
export async function makeSecret(options: SecretOptions, make: () => Promise<Made>): Promise<void> {
  if (options.out !== undefined) return toFile(options.out, options, make);
  const { secret, answer, record } = await make();
  if (options.json === true) return writeJson(answer);
  await writeFields(record, process.stderr);
  await write(`${secret}\n`);
}

async function toFile(path: string, options: OutputOptions, make: () => Promise<Made>): Promise<void> {
  const file = await createSecretFile(path);
  const { secret, record } = await make().catch(async (error: unknown) => {
    await file.abandon();
    throw error;
  });
  await file.write(secret);
  await (options.json === true ? writeJson(record) : writeFields(record));
}

import { isJsonObject, type JsonObject } from "../lib/json.ts";
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
  /** What of it people want to see. */
  readonly record: JsonObject;
}

/**
 * Makes a secret and shows it once: alone on standard output, so that a script can keep it, with the record on standard error;
 * in the answer of the server with `--json`; or in a file, and then nowhere else.
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
  const { secret, answer, record } = await make().catch(async (error: unknown) => {
    await file.abandon();
    throw error;
  });
  await file.write(secret);
  await (options.json === true ? writeJson(without(secret, answer)) : writeFields(record));
}

/** The same answer but for its secret, so that a script reads both alike. */
function without(secret: string, answer: JsonObject): JsonObject {
  const members = Object.entries(answer).filter(([, value]) => value !== secret);
  return Object.fromEntries(
    members.map(([name, value]) => [name, isJsonObject(value) ? without(secret, value) : value]),
  );
}

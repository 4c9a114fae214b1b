import { isJsonObject, type JsonObject } from "../lib/json.ts";
import { createSecretFile } from "./credential-input.ts";
import { type OutputOptions, write, writeFields, writeJson } from "./output.ts";

export interface SecretOptions extends OutputOptions {
  /** A new file for the secret, which then does not go to stdout. */
  readonly out?: string;
}

/** The result of a call that creates a secret. */
export interface CreatedSecret {
  readonly secret: string;
  /** The server's response, which contains the secret. */
  readonly answer: JsonObject;
  /** The part of the response for people. */
  readonly record: JsonObject;
}

/**
 * Creates a secret and outputs it once: alone on stdout, with the record on stderr; within the response with `--json`; or only in the
 * file `--out`.
 */
export async function outputSecret(options: SecretOptions, create: () => Promise<CreatedSecret>): Promise<void> {
  if (options.out !== undefined) return toFile(options.out, options, create);
  const { secret, answer, record } = await create();
  if (options.json === true) return writeJson(answer);
  await writeFields(record, process.stderr);
  await write(`${secret}\n`);
}

async function toFile(path: string, options: OutputOptions, create: () => Promise<CreatedSecret>): Promise<void> {
  const file = await createSecretFile(path);
  const { secret, answer, record } = await create().catch(async (error: unknown) => {
    await file.abandon();
    throw error;
  });
  await file.write(secret);
  await (options.json === true ? writeJson(without(secret, answer)) : writeFields(record));
}

/** Removes the secret from the response, whose shape stays the same for scripts. */
function without(secret: string, answer: JsonObject): JsonObject {
  const members = Object.entries(answer).filter(([, value]) => value !== secret);
  return Object.fromEntries(
    members.map(([name, value]) => [name, isJsonObject(value) ? without(secret, value) : value]),
  );
}

import { open, unlink } from "node:fs/promises";
import type { Message } from "@bufbuild/protobuf";
import { invalidArgument } from "../domain/errors.ts";
import { isJsonObject, type JsonObject } from "../lib/json.ts";
import { type OutputOptions, write, writeFields, writeJson, writeObject } from "./output.ts";
import { shownPath } from "./redact.ts";
import { fieldOf, restJson } from "./rest-json.ts";

export interface SecretOptions extends OutputOptions {
  /** A new file for the secret, which then does not go to stdout. */
  readonly out?: string;
}

interface CreatedSecret {
  readonly secret: string;
  /** The server's response, which contains the secret. */
  readonly answer: Message;
  /** The part of the response for people. */
  readonly record: Message;
}

/**
 * Creates a secret and outputs it once: alone on stdout, with the record on stderr; within the response with `--json`; or only in the
 * file `--out`.
 */
export async function outputSecret(options: SecretOptions, create: () => Promise<CreatedSecret>): Promise<void> {
  if (options.output !== undefined && options.out === undefined)
    throw invalidArgument("--output", "requires --out; otherwise the secret is written to stdout");
  if (options.out !== undefined) return toFile(options.out, options, create);
  const { secret, answer, record } = await create();
  if (options.json === true) return writeJson(restJson(answer));
  await writeFields(without(secret, restJson(record)), process.stderr);
  await write(`${secret}\n`);
}

/** Creates the file (mode 0600) before the secret, so that the secret cannot be lost. Rejects if the file exists. */
async function toFile(path: string, options: OutputOptions, create: () => Promise<CreatedSecret>): Promise<void> {
  await using file = await open(path, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    throw invalidArgument("--out", `${shownPath(path)} cannot be created (${error.code})`);
  });
  const { secret, answer, record } = await create().catch(async (error: unknown) => {
    await unlink(path);
    throw error;
  });
  await file.writeFile(`${secret}\n`);
  await file.sync();
  if (options.output !== undefined) return write(`${fieldOf(record, options.output)}\n`);
  await writeObject(without(secret, restJson(options.json === true ? answer : record)), options);
}

/** Removes the secret from the response, whose shape stays the same for scripts. */
function without(secret: string, answer: JsonObject): JsonObject {
  const members = Object.entries(answer).filter(([, value]) => value !== secret);
  return Object.fromEntries(
    members.map(([name, value]) => [name, isJsonObject(value) ? without(secret, value) : value]),
  );
}
